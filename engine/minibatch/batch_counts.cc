#include "engine/minibatch/batch_counts.h"

#include <cmath>

#include "engine/model/parts/class_weights.h"
#include "kernels/spec/row_kernels.h"

namespace ooc {
namespace {

// Calls visit(label) for every entry of the seeds' labels in the train split.
template <class T, class Visit>
void for_each_label(const LoadedBatch& batch, Visit&& visit) {
  const auto* const splits = batch.seed_rows("splits").data<std::uint8_t>(0);
  const MatrixView labels = batch.seed_rows("labels");
  for (std::int64_t slice = 0; slice < labels.slice_count(); ++slice) {
    const T* const at = labels.data<T>(slice);
    for (std::int64_t row = 0; row < labels.rows; ++row) {
      if (splits[row] != kTrainSplit) continue;
      for (std::int64_t c = 0; c < labels.slice_cols(slice); ++c) {
        visit(at[row * labels.stride(slice) + c]);
      }
    }
  }
}

}  // namespace

StepCounts count_labels(const RunConfig& config, const LoadedBatch& batch,
                        ParameterStore& parameters) {
  StepCounts counts;
  if (config.model.task == Task::kRegression) {
    for_each_label<float>(batch, [&](float label) { counts.labels += !std::isnan(label); });
    return counts;
  }
  if (config.model.task == Task::kMultiLabel) {
    for_each_label<std::uint8_t>(
        batch, [&](std::uint8_t label) { counts.labels += label != kUnlabelled ? 1 : 0; });
    return counts;
  }
  const bool weighs = config.model.class_weights.weigh() && config.model.task == Task::kSingle;
  const void* const weights = weighs ? parameters.data(kClassWeightsParameter) : nullptr;
  for_each_label<std::int32_t>(batch, [&](std::int32_t label) {
    if (label < 0) return;
    ++counts.labels;
    if (!weighs) return;
    counts.label_weights += parameters.real() == DType::kF32
                                ? static_cast<const float*>(weights)[label]
                                : static_cast<const double*>(weights)[label];
  });
  return counts;
}

}  // namespace ooc
