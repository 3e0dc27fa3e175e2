#include "kernels/spec/edge_program.h"

#include <algorithm>

#include "storage/format/tensor_layout.h"

namespace ooc {
namespace {

constexpr std::int64_t kAlignment = 64;

}  // namespace

bool is_plain_sum(const EdgeProgram& program) {
  const auto is_loaded = [&](int value, EdgeLoad from) {
    return std::any_of(program.loads.begin(), program.loads.end(),
                       [&](const auto& load) { return load.value == value && load.load == from; });
  };
  const auto is_plain = [&](const EdgeProgram::FoldStep& fold) {
    return fold.fold == Fold::kSum && is_loaded(fold.inputs[0], EdgeLoad::kStreamed) &&
           (fold.inputs.size() == 1 || is_loaded(fold.inputs[1], EdgeLoad::kWeights));
  };
  return program.steps.empty() && std::all_of(program.folds.begin(), program.folds.end(), is_plain);
}

std::int64_t edge_value_bytes(const EdgeProgram& program, int value) {
  const EdgeProgram::Shape& shape = program.values[static_cast<std::size_t>(value)];
  const bool sliced = shape.cols == program.slice_local_cols;
  const TensorLayout layout{program.batch_edges,
                            sliced ? std::min(shape.cols, kSliceWidth) : shape.cols,
                            program.batch_edges};
  std::int64_t bytes = 0;
  for (std::int64_t slice = 0; slice < layout.slice_count(); ++slice) {
    bytes += round_up(layout.rows * layout.slice_stride(slice) *
                          static_cast<std::int64_t>(dtype_bytes(shape.dtype)),
                      kAlignment);
  }
  return bytes;
}

std::int64_t edge_scratch_bytes(const EdgeProgram& program) {
  const std::int64_t ids =
      round_up(program.batch_edges * std::int64_t{sizeof(std::int32_t)}, kAlignment);
  const std::int64_t batch_bytes = (program.splits >= 0 ? 3 : 2) * ids;
  if (is_plain_sum(program)) return program.splits >= 0 ? batch_bytes : 0;
  std::int64_t bytes = batch_bytes;
  for (int value = 0; value < static_cast<int>(program.values.size()); ++value) {
    bytes += edge_value_bytes(program, value);
  }
  return bytes;
}

}  // namespace ooc
