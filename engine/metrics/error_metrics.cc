#include "engine/metrics/error_metrics.h"

namespace ooc {
namespace {

// Of one target in one split.
struct TargetErrors {
  std::int64_t count = 0;
  double squares = 0, sizes = 0;  // sums over the errors
  double mean = 0, spread = 0;    // of the labels; the spread is the sum of squares about the mean

  void add(double label, double predicted) {
    const double error = predicted - label;
    squares += error * error;
    sizes += std::abs(error);
    // Welford 1962: nothing large is subtracted from anything large.
    const double from_mean = label - mean;
    mean += from_mean / static_cast<double>(++count);
    spread += from_mean * (label - mean);
  }

  double r2() const {
    if (count < 2 || std::isnan(squares)) return kUndefined;
    if (spread == 0) return squares == 0 ? 1 : 0;
    return 1 - squares / spread;
  }

  double metric(Metric metric) const {
    const auto labels = static_cast<double>(count);
    if (metric == Metric::kRmse) return std::sqrt(squares / labels);
    return metric == Metric::kMae ? sizes / labels : r2();
  }
};

double mean_over_targets(const std::vector<TargetErrors>& targets, Metric metric) {
  const std::int64_t least = metric == Metric::kR2 ? 2 : 1;
  double sum = 0, count = 0;
  for (const TargetErrors& target : targets) {
    if (target.count < least) continue;
    sum += target.metric(metric);
    ++count;
  }
  return sum / count;  // NaN for none
}

}  // namespace

std::vector<BySplit> error_metrics(const MetricRows& rows, std::span<const Metric> wanted) {
  const std::int64_t cols = rows.layout().cols;
  std::array<std::vector<TargetErrors>, kSplits> errors;
  for (auto& split : errors) split.resize(static_cast<std::size_t>(cols));
  for_each_row(rows, [&](std::size_t split, const RowLabels& labels, const auto* values) {
    for (std::int64_t c = 0; c < cols; ++c) {
      if (!labels.labelled(c)) continue;
      errors[split][static_cast<std::size_t>(c)].add(labels.value(c), double{values[c]});
    }
  });
  std::vector<BySplit> scores(wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    for (std::size_t split = 0; split < kSplits; ++split) {
      scores[i][split] = mean_over_targets(errors[split], wanted[i]);
    }
  }
  return scores;
}

}  // namespace ooc
