// Metrics of values: how far predictions are from their labels.
#pragma once

#include <span>
#include <vector>

#include "engine/metrics/metric_rows.h"

namespace ooc {

// rmse, mae and r2, in the order in which they are wanted. Reads all rows once.
std::vector<BySplit> error_metrics(const MetricRows& rows, std::span<const Metric> wanted);

}  // namespace ooc
