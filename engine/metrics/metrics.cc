#include "engine/metrics/metrics.h"

#include <algorithm>

#include "engine/metrics/count_metrics.h"
#include "engine/metrics/error_metrics.h"
#include "engine/metrics/rank_metrics.h"

namespace ooc {
namespace {

// Metrics that one walk over the rows gives together.
enum class Family { kCounts, kRanks, kErrors };

Family family_of(Metric metric) {
  if (is_value_metric(metric)) return Family::kErrors;
  return is_rank_metric(metric) ? Family::kRanks : Family::kCounts;
}

constexpr Family kFamilies[] = {Family::kCounts, Family::kRanks, Family::kErrors};

// Those that need logits.
std::vector<Metric> metrics_of(Family family, std::span<const Metric> metrics, Task task) {
  std::vector<Metric> result;
  std::copy_if(metrics.begin(), metrics.end(), std::back_inserter(result), [&](Metric metric) {
    return family_of(metric) == family && needs_logits(metric, task);
  });
  return result;
}

std::vector<BySplit> compute(Family family, const MetricRows& rows,
                             std::span<const Metric> wanted) {
  if (family == Family::kCounts) return count_metrics(rows, wanted);
  return family == Family::kRanks ? rank_metrics(rows, wanted) : error_metrics(rows, wanted);
}

}  // namespace

bool needs_logits(Metric metric, Task task) {
  if (metric == Metric::kMicroF1) return task == Task::kMultiLabel;
  return metric != Metric::kAccuracy;
}

bool need_logits(std::span<const Metric> metrics, Task task) {
  return std::any_of(metrics.begin(), metrics.end(),
                     [&](Metric metric) { return needs_logits(metric, task); });
}

std::optional<std::vector<Scores>> compute_metrics(std::span<const Metric> metrics, Task task,
                                                   BlockRows& logits, BlockRows& labels,
                                                   BlockRows& splits,
                                                   const std::atomic<bool>* stop) {
  const MetricRows rows{task, logits, labels, splits, stop};
  std::vector<Scores> scores(metrics.size());
  try {
    for (const Family family : kFamilies) {
      const std::vector<Metric> wanted = metrics_of(family, metrics, task);
      if (wanted.empty()) continue;
      const std::vector<BySplit> found = compute(family, rows, wanted);
      for (std::size_t i = 0; i < metrics.size(); ++i) {
        const auto at = std::find(wanted.begin(), wanted.end(), metrics[i]);
        if (at == wanted.end()) continue;
        const auto [train, valid, test] = found[static_cast<std::size_t>(at - wanted.begin())];
        scores[i] = {train, valid, test};
      }
    }
  } catch (const MetricStopped&) {
    return std::nullopt;
  }
  return scores;
}

std::int64_t metric_readings(std::span<const Metric> metrics, Task task, std::int64_t vertices,
                             std::int64_t cols) {
  std::int64_t readings = 0;
  for (const Family family : kFamilies) {
    if (metrics_of(family, metrics, task).empty()) continue;
    readings += family == Family::kRanks ? rank_readings(task, vertices, cols) : 1;
  }
  return readings;
}

std::int64_t metric_memory(std::span<const Metric> metrics, Task task, std::int64_t vertices,
                           std::int64_t cols) {
  return metrics_of(Family::kRanks, metrics, task).empty() ? 0 : rank_memory(task, vertices, cols);
}

}  // namespace ooc
