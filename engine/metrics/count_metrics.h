// Metrics of counts: which classes are labelled, which predicted.
#pragma once

#include <span>
#include <vector>

#include "engine/metrics/metric_rows.h"

namespace ooc {

// micro_f1 and macro_f1, in the order in which they are wanted. Reads all rows once.
std::vector<BySplit> count_metrics(const MetricRows& rows, std::span<const Metric> wanted);

}  // namespace ooc
