#include "engine/model/parts/task.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/model/parts/words.h"
#include "storage/base/errors.h"
#include "storage/dataset/dataset.h"

namespace ooc {

Task default_task(const Manifest& manifest) {
  return manifest.labels == LabelKind::kMulti ? Task::kMultiLabel : Task::kSingle;
}

Metric default_metric(Task task) {
  if (task == Task::kMultiLabel) return Metric::kMicroF1;
  return task == Task::kBinary ? Metric::kRocAuc : Metric::kAccuracy;
}

void check_task(Task task, const Manifest& manifest, const std::string& path) {
  const bool multi = manifest.labels == LabelKind::kMulti;
  const bool fits =
      multi == (task == Task::kMultiLabel) && (task != Task::kBinary || manifest.classes == 2);
  if (fits) return;
  throw UsageError(
      fmt::format("--task {} does not fit {}-label labels of {} classes", word_of(kTasks, task),
                  kLabelKindNames[static_cast<std::size_t>(manifest.labels)], manifest.classes),
      path, fmt::format("leave it out, it is {} then", word_of(kTasks, default_task(manifest))));
}

void check_metric(Metric metric, Task task, std::int64_t classes) {
  const bool ranks = metric == Metric::kRocAuc || metric == Metric::kAveragePrecision;
  if (!ranks || task != Task::kSingle || classes == 2) return;
  throw UsageError(fmt::format("--metric {} does not fit --task single with {} classes",
                               word_of(kMetrics, metric), classes),
                   "two are needed", "use accuracy, micro_f1 or macro_f1");
}

void check_class_weights(ClassWeights weights, Task task) {
  if (weights == ClassWeights::kNone || task == Task::kSingle) return;
  throw UsageError(fmt::format("--class-weights {} does not fit --task {}",
                               word_of(kClassWeights, weights), word_of(kTasks, task)),
                   "the weights are those of single labels",
                   task == Task::kBinary ? "leave it out, or use --task single" : "leave it out");
}

std::vector<double> balanced_weights(const Dataset& dataset) {
  constexpr std::int64_t kBatchRows = 65536;
  std::vector<std::int64_t> counts(static_cast<std::size_t>(dataset.manifest().classes));
  std::vector<std::int32_t> labels(kBatchRows);
  std::vector<std::uint8_t> splits(kBatchRows);
  for (std::int64_t begin = 0; begin < dataset.vertices(); begin += kBatchRows) {
    const std::int64_t rows = std::min(kBatchRows, dataset.vertices() - begin);
    dataset.tensor("labels")->read_rows(begin, rows, labels.data());
    dataset.tensor("splits")->read_rows(begin, rows, splits.data());
    for (std::size_t i = 0; i < static_cast<std::size_t>(rows); ++i) {
      const bool counted = splits[i] == static_cast<std::uint8_t>(Split::kTrain) && labels[i] >= 0;
      if (counted) ++counts[static_cast<std::size_t>(labels[i])];
    }
  }
  std::int64_t vertices = 0, classes = 0;
  for (const std::int64_t count : counts) {
    vertices += count;
    classes += count > 0 ? 1 : 0;
  }
  std::vector<double> weights;
  for (const std::int64_t count : counts) {
    const auto share = static_cast<double>(classes * count);
    weights.push_back(count > 0 ? static_cast<double>(vertices) / share : 0);
  }
  return weights;
}

}  // namespace ooc
