#include "engine/batches/stored_batch.h"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <algorithm>

#include "storage/base/errors.h"
#include "storage/base/half.h"

namespace ooc {
namespace {

constexpr std::int64_t kGrain = 4096;  // rows of a task

TensorLayout layout_of(const BatchTensor& tensor, std::int64_t rows) {
  return {rows, tensor.cols, rows};
}

std::int64_t tensor_bytes(const BatchTensor& tensor, std::int64_t rows) {
  std::int64_t bytes = 0;
  for (std::int64_t slice = 0; slice < layout_of(tensor, rows).slice_count(); ++slice) {
    bytes += BatchLayout::slice_bytes(tensor, rows, slice);
  }
  return bytes;
}

// Of rows in slices, as a chunk has them.
MatrixView view_of(const BatchTensor& tensor, const std::byte* rows, std::int64_t count) {
  auto* const first = const_cast<std::byte*>(rows);  // programs read them only
  const TensorLayout layout = layout_of(tensor, count);
  const std::int64_t slices = layout.slice_count();
  const std::int64_t full = BatchLayout::slice_bytes(tensor, count, 0);
  return {tensor.dtype,
          count,
          tensor.cols,
          kSliceWidth,
          layout.slice_stride(slices - 1),
          0,
          {first, slices > 2 ? full : 0, first + (slices - 1) * full}};
}

}  // namespace

StoredBatch::StoredBatch(const BatchLoaderOptions& options, const BatchLayout& layout)
    : layout_(layout) {
  const std::vector<BatchTensor>& tensors = layout_.tensors();
  for (const BatchInput& input : wanted_inputs(options)) {
    const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const BatchTensor& tensor) {
      return tensor.name == input.name;
    });
    OOC_CHECK(found != tensors.end() && (input.level == 0 || !found->of_seeds));
    inputs_.push_back({static_cast<std::size_t>(found - tensors.begin()), input.dtype});
  }
}

// The tensor in the type that is read.
BatchTensor StoredBatch::widened(const Input& input) const {
  BatchTensor tensor = layout_.tensors()[input.tensor];
  tensor.dtype = input.dtype;
  return tensor;
}

std::int64_t StoredBatch::widened_bytes(std::span<const std::int64_t> level_rows) const {
  std::int64_t bytes = 0;
  for (const Input& input : inputs_) {
    const BatchTensor& tensor = layout_.tensors()[input.tensor];
    if (tensor.dtype == input.dtype) continue;
    bytes += tensor_bytes(widened(input), BatchLayout::rows_of(tensor, level_rows));
  }
  return bytes;
}

// Padding is zero, and stays so.
void StoredBatch::widen_rows(const Input& input, const std::byte* from, std::int64_t rows,
                             std::byte* to) const {
  const BatchTensor& tensor = layout_.tensors()[input.tensor];
  const BatchTensor wide = widened(input);
  const TensorLayout layout = layout_of(tensor, rows);
  for (std::int64_t slice = 0; slice < layout.slice_count(); ++slice) {
    const std::int64_t stride = layout.slice_stride(slice);
    const auto from_row = stride * static_cast<std::int64_t>(dtype_bytes(tensor.dtype));
    const auto to_row = stride * static_cast<std::int64_t>(dtype_bytes(wide.dtype));
    tbb::parallel_for(tbb::blocked_range<std::int64_t>(0, rows, kGrain), [&](const auto& range) {
      widen(tensor.dtype, from + range.begin() * from_row, wide.dtype, to + range.begin() * to_row,
            static_cast<std::size_t>((range.end() - range.begin()) * stride));
    });
    from += BatchLayout::slice_bytes(tensor, rows, slice);
    to += BatchLayout::slice_bytes(wide, rows, slice);
  }
}

const BatchContent& StoredBatch::open(const BatchView& batch) {
  const auto bytes = static_cast<std::size_t>(widened_bytes(batch.level_rows));
  if (bytes > 0 && (!memory_ || memory_->bytes() < bytes)) {
    memory_.reset();
    memory_.emplace(bytes, "rows of a batch");
  }
  std::byte* at = memory_ ? memory_->data() : nullptr;
  content_ = {batch.level_rows, batch.edges, batch.records, {}};
  for (const Input& input : inputs_) {
    const BatchTensor& tensor = layout_.tensors()[input.tensor];
    const std::int64_t rows = BatchLayout::rows_of(tensor, batch.level_rows);
    const std::byte* from = batch.rows[input.tensor];
    const BatchTensor wide = widened(input);
    if (tensor.dtype != input.dtype) {
      widen_rows(input, from, rows, at);
      from = at;
      at += tensor_bytes(wide, rows);
    }
    content_.rows[tensor.name] = view_of(wide, from, rows);
  }
  return content_;
}

}  // namespace ooc
