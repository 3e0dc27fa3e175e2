#include "sched/sampling/row_record.h"

#include <utility>

#include "storage/base/errors.h"
#include "storage/base/half.h"

namespace ooc {
namespace {

bool converts(DType from, DType to) {
  return from == to || (is_feature_dtype(from) && (to == DType::kF32 || to == DType::kF64));
}

}  // namespace

RowRecord::RowRecord(std::vector<RowInput> inputs) : inputs_(std::move(inputs)) {
  OOC_CHECK(!inputs_.empty());
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const TensorLayout& layout = inputs_[i].store->layout();
    const DType dtype = inputs_[i].store->dtype();
    OOC_CHECK(layout.rows == vertices() && layout.block_rows == block_rows());
    OOC_CHECK(converts(dtype, inputs_[i].dtype));
    for (std::int64_t slice = 0; slice < layout.slice_count(); ++slice) {
      const std::size_t bytes =
          static_cast<std::size_t>(layout.slice_cols(slice)) * dtype_bytes(dtype);
      const std::size_t stride =
          static_cast<std::size_t>(layout.slice_stride(slice)) * dtype_bytes(dtype);
      strips_.push_back({i, slice, bytes_, bytes, 0, stride});
      bytes_ += bytes;
    }
    strips_.back().padding = (kRowAlignment - bytes_ % kRowAlignment) % kRowAlignment;
    bytes_ += strips_.back().padding;
  }
}

}  // namespace ooc
