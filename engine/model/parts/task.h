// What a model is trained for, and by what it is judged.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ooc {

class Dataset;
struct Manifest;

enum class Task {
  kSingle,      // one class a vertex; a logit a class, softmax
  kMultiLabel,  // any number of classes a vertex; a logit a class, sigmoid
  kBinary,      // one of two classes a vertex; one logit, of class 1, sigmoid
};

// Computed over all labelled vertices of a split (engine/train/metrics.h).
enum class Metric { kAccuracy, kMicroF1, kMacroF1, kRocAuc, kAveragePrecision };

// How much a training vertex counts in the loss, by its class.
enum class ClassWeights {
  kNone,      // as much as any other
  kBalanced,  // training vertices / (classes that occur among them * those of its class)
};

// What the labels ask for, if nobody says otherwise.
Task default_task(const Manifest& manifest);
Metric default_metric(Task task);

// UsageError, naming both sides, where the task doesn't fit the dataset's labels, the metric not
// the task, or the weights not the task.
void check_task(Task task, const Manifest& manifest, const std::string& path);
void check_metric(Metric metric, Task task, std::int64_t classes);
void check_class_weights(ClassWeights weights, Task task);

// Logits a vertex.
inline std::int64_t logit_cols(Task task, std::int64_t classes) {
  return task == Task::kBinary ? 1 : classes;
}
// ClassWeights::kBalanced of a single-label dataset; 0 for classes without a training vertex. Their
// sum over the training vertices is the number of those.
std::vector<double> balanced_weights(const Dataset& dataset);

}  // namespace ooc
