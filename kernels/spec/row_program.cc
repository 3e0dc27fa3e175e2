#include "kernels/spec/row_program.h"

#include "storage/format/tensor_layout.h"

namespace ooc {

std::int64_t scratch_slice_offset(std::int64_t group_rows, std::int64_t cols, DType dtype,
                                  std::int64_t slice) {
  const TensorLayout layout{group_rows, cols, group_rows};
  std::int64_t offset = 0;
  for (std::int64_t s = 0; s < slice; ++s) {
    const std::int64_t row_bytes =
        layout.slice_stride(s) * static_cast<std::int64_t>(dtype_bytes(dtype));
    offset += round_up(group_rows * row_bytes, 64);
  }
  return offset;
}

}  // namespace ooc
