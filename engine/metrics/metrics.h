// The metrics that training is judged by, exactly, over all labels of each split, from the logits
// of all vertices, in double. Definitions are those of scikit-learn; what an evaluation already
// knows from its loss sums (accuracy) is not computed here.
//
//   micro_f1   2 hits / (predicted + labelled), summed over the classes. With one class a vertex it
//              is the accuracy.
//   macro_f1   the mean over classes of 2 hits / (predicted + labelled). With one class a vertex
//              classes that are neither labelled nor predicted are left out; with many such a class
//              counts 0.
//   rocauc     the share of pairs of a positive and a negative vertex in which the positive one has
//              the larger score, equal scores counting half.
//   ap         sum of (recall's step * precision) over falling thresholds
//              (average_precision_score).
//   rmse, mae  the root of the mean squared error, the mean absolute error.
//   r2         1 - squared error / squares of the labels about their mean; of labels that are all
//              equal 1 where predictions are exact, else 0.
//
// A vertex's class is that of the largest logit, the lowest of equal ones; of a multi-label task
// those with a logit above 0, of a binary one 1 if the logit is above 0. Scores of rocauc and ap:
// of two classes the difference of the logits, of a binary task the logit; of a multi-label one
// each class has its own, and the metric is the mean over the classes that have both positive and
// negative vertices in the split, as OGB's evaluators do. Metrics of values are means over the
// targets. An entry without a label plays no part, nor does a class or target without labels in the
// split, for r2 one with a single label.
#pragma once

#include <atomic>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "engine/metrics/block_rows.h"
#include "engine/model/parts/task.h"

namespace ooc {

// A metric of one evaluation by split; NaN where it isn't defined: an empty split, for rocauc and
// ap one without both kinds of vertices, or a score that is NaN.
struct Scores {
  double train = std::numeric_limits<double>::quiet_NaN();
  double valid = std::numeric_limits<double>::quiet_NaN();
  double test = std::numeric_limits<double>::quiet_NaN();
};

// Whether the metric, or one of them, is something else than the accuracy of the loss sums.
bool needs_logits(Metric metric, Task task);
bool need_logits(std::span<const Metric> metrics, Task task);

// In the order of the metrics; NaN of those that need no logits. `logits`: fp32 or fp64; `labels`
// and `splits` as the dataset has them (storage/dataset/dataset.h). They are read block by block,
// metric_readings() times. The result is the same for any cut into blocks or I/O chunks. Nothing,
// within a block or the sorting of a column, once `stop` is set.
std::optional<std::vector<Scores>> compute_metrics(std::span<const Metric> metrics, Task task,
                                                   BlockRows& logits, BlockRows& labels,
                                                   BlockRows& splits,
                                                   const std::atomic<bool>* stop);
// How often it reads all rows of each; metrics that need no logits count nothing.
std::int64_t metric_readings(std::span<const Metric> metrics, Task task, std::int64_t vertices,
                             std::int64_t cols);
// Memory for rocauc and ap: scores of the vertices in fp64, of one column or as many as fit 16 MiB.
std::int64_t metric_memory(std::span<const Metric> metrics, Task task, std::int64_t vertices,
                           std::int64_t cols);

}  // namespace ooc
