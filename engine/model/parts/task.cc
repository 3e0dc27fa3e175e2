#include "engine/model/parts/task.h"

#include <fmt/format.h>

#include "engine/model/parts/words.h"
#include "storage/base/errors.h"

namespace ooc {

bool lower_is_better(Metric metric) { return metric == Metric::kRmse || metric == Metric::kMae; }

Task default_task(LabelKind labels) {
  if (labels == LabelKind::kValues) return Task::kRegression;
  return labels == LabelKind::kMulti ? Task::kMultiLabel : Task::kSingle;
}

Loss default_loss(Task task) {
  return task == Task::kRegression ? Loss::kSquared : Loss::kCrossEntropy;
}

Metric default_metric(Task task) {
  switch (task) {
    case Task::kSingle:
      return Metric::kAccuracy;
    case Task::kMultiLabel:
      return Metric::kMicroF1;
    case Task::kBinary:
      return Metric::kRocAuc;
    case Task::kRegression:
      break;
  }
  return Metric::kRmse;
}

LabelKind labels_of(Task task) {
  if (task == Task::kRegression) return LabelKind::kValues;
  return task == Task::kMultiLabel ? LabelKind::kMulti : LabelKind::kSingle;
}

std::string describe_labels(LabelKind labels, std::int64_t classes) {
  if (labels == LabelKind::kValues) {
    return fmt::format("labels that are values, {} a vertex", classes);
  }
  return fmt::format("{}-label labels of {} classes",
                     kLabelKindNames[static_cast<std::size_t>(labels)], classes);
}

void check_task(Task task, LabelKind labels, std::int64_t classes, const std::string& where) {
  if (labels == labels_of(task) && (task != Task::kBinary || classes == 2)) return;
  std::string remedy =
      fmt::format("leave it out, it is {} then", word_of(kTasks, default_task(labels)));
  if (task == Task::kRegression) remedy += ", or import the labels with --label-kind values";
  throw UsageError(fmt::format("--task {} does not fit {}", word_of(kTasks, task),
                               describe_labels(labels, classes)),
                   where, remedy);
}

void check_loss(Loss loss, Task task) {
  if ((loss == Loss::kCrossEntropy) == (task != Task::kRegression)) return;
  throw UsageError(fmt::format("--loss {} does not fit --task {}", word_of(kLosses, loss),
                               word_of(kTasks, task)),
                   task == Task::kRegression ? "its labels are values" : "its labels are classes",
                   task == Task::kRegression ? "give mse, mae or huber" : "leave it out");
}

void check_metrics(std::span<const Metric> metrics, Task task, std::int64_t classes) {
  const bool values = task == Task::kRegression;
  for (const Metric metric : metrics) {
    const std::string misfit = fmt::format("--metric {} does not fit --task {}",
                                           word_of(kMetrics, metric), word_of(kTasks, task));
    if (is_value_metric(metric) != values) {
      throw UsageError(
          misfit, values ? "its labels are values" : "its labels are classes",
          values ? "use rmse, mae or r2" : "use accuracy, micro_f1, macro_f1, rocauc or ap");
    }
    if (is_rank_metric(metric) && task == Task::kSingle && classes != 2) {
      throw UsageError(fmt::format("{} with {} classes", misfit, classes), "two are needed",
                       "use accuracy, micro_f1 or macro_f1");
    }
  }
}

}  // namespace ooc
