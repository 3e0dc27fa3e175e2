// What a model is trained for, and by what it is judged.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "storage/format/manifest.h"

namespace ooc {

enum class Task {
  kSingle,      // one class a vertex; a logit a class, softmax
  kMultiLabel,  // any number of classes a vertex; a logit a class, sigmoid
  kBinary,      // one of two classes a vertex; one logit, of class 1, sigmoid
  kRegression,  // values; one output a target
};

// What training makes small: its mean over the labels of the training vertices.
enum class Loss {
  kCrossEntropy,  // of classes
  kSquared,       // of values: kernels/spec/element_math.h
  kAbsolute,
  kHuber,
};

// Computed over all labels of a split (engine/metrics/metrics.h).
enum class Metric {
  kAccuracy,
  kMicroF1,
  kMacroF1,
  kRocAuc,
  kAveragePrecision,
  kRmse,
  kMae,
  kR2,
};
bool lower_is_better(Metric metric);
inline bool is_value_metric(Metric metric) { return metric >= Metric::kRmse; }
// Of an order of scores.
inline bool is_rank_metric(Metric metric) {
  return metric == Metric::kRocAuc || metric == Metric::kAveragePrecision;
}

// What the labels ask for, if nobody says otherwise.
Task default_task(LabelKind labels);
Loss default_loss(Task task);
Metric default_metric(Task task);

// The labels of a dataset that the task is about.
LabelKind labels_of(Task task);

// "single-label labels of 7 classes".
std::string describe_labels(LabelKind labels, std::int64_t classes);

// UsageError, naming both sides, where the task doesn't fit the labels of `where`, or the loss or a
// metric not the task.
void check_task(Task task, LabelKind labels, std::int64_t classes, const std::string& where);
void check_loss(Loss loss, Task task);
void check_metrics(std::span<const Metric> metrics, Task task, std::int64_t classes);

// Logits a vertex.
inline std::int64_t logit_cols(Task task, std::int64_t classes) {
  return task == Task::kBinary ? 1 : classes;
}

}  // namespace ooc
