// Metrics of an order: vertices of a class ought to have larger scores than others.
#pragma once

#include <span>
#include <vector>

#include "engine/metrics/metric_rows.h"

namespace ooc {

// rocauc and ap, in the order in which they are wanted. Reads all rows rank_readings() times, with
// the scores of some columns in memory at once.
std::vector<BySplit> rank_metrics(const MetricRows& rows, std::span<const Metric> wanted);
std::int64_t rank_readings(Task task, std::int64_t vertices, std::int64_t cols);
std::int64_t rank_memory(Task task, std::int64_t vertices, std::int64_t cols);

}  // namespace ooc
