// Where the rows of a call lie, as kernels find it: for each operand a view a row group, in the
// device's memory. A launch computes all groups, blockIdx.z is the group.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/spec/matrix_view.h"
#include "kernels/spec/operator.h"
#include "storage/base/errors.h"
#include "storage/format/tensor_layout.h"

namespace ooc::cuda {

// A matrix of slices of kSliceWidth columns, or of one slice of any width.
struct GroupView {
  std::byte* first = nullptr;     // row 0 of the first slice
  std::byte* last = nullptr;      // of the last one
  std::int64_t slice_stride = 0;  // bytes
  std::int32_t rows = 0, cols = 0;
  std::int32_t slices = 0, width = 0;  // columns of every slice but the last
  std::int32_t last_stride = 0;        // elements between two rows of the last slice
  std::int32_t first_column = 0;

  GroupView() = default;
  explicit GroupView(const MatrixView& view)
      : slice_stride(view.slices.slice_stride),
        rows(static_cast<std::int32_t>(view.rows)),
        cols(static_cast<std::int32_t>(view.cols)),
        slices(static_cast<std::int32_t>(view.slice_count())),
        width(static_cast<std::int32_t>(view.slice_width)),
        last_stride(static_cast<std::int32_t>(view.last_stride)),
        first_column(static_cast<std::int32_t>(view.first_column)) {
    const auto element = static_cast<std::int64_t>(dtype_bytes(view.dtype));
    first = view.slices.first + view.row_offset * view.slice_width * element;
    last = view.slices.last + view.row_offset * view.last_stride * element;
    OOC_CHECK(slices == 1 || width == kSliceWidth);
  }
  __device__ std::int32_t slice_cols(std::int32_t slice) const {
    return slice + 1 == slices ? cols - slice * width : width;
  }
};

// What a thread has of a slice.
template <class T>
struct SliceRows {
  T* first;
  std::int64_t stride;

  __device__ SliceRows(const GroupView& view, std::int32_t slice)
      : first(reinterpret_cast<T*>(
            slice + 1 == view.slices ? view.last : view.first + slice * view.slice_stride)),
        stride(slice + 1 == view.slices ? view.last_stride : view.width) {}
  __device__ T& operator()(std::int64_t row, std::int64_t col) const {
    return first[row * stride + col];
  }
};

// Elements by row and column of the matrix.
template <class T>
struct Elements {
  T* first;
  T* last;
  std::int64_t slice_stride;  // elements
  std::int32_t rows, cols, last_slice, last_stride;

  __device__ explicit Elements(const GroupView& view)
      : first(reinterpret_cast<T*>(view.first)),
        last(reinterpret_cast<T*>(view.last)),
        slice_stride(view.slice_stride / static_cast<std::int64_t>(sizeof(T))),
        rows(view.rows),
        cols(view.cols),
        last_slice(view.slices - 1),
        last_stride(view.last_stride) {}
  __device__ T& at(std::int64_t row, std::int64_t col) const {
    static_assert(kSliceWidth == 1 << kShift);
    const std::int64_t slice = last_slice == 0 ? 0 : col >> kShift;
    const std::int64_t in_slice = col - (slice << kShift);
    return slice == last_slice ? last[row * last_stride + in_slice]
                               : first[slice * slice_stride + row * kSliceWidth + in_slice];
  }

 private:
  static constexpr int kShift = 5;
};

// An operand of an operator, as the host knows it.
struct GroupOperand {
  const GroupView* groups = nullptr;  // of the device
  std::int64_t rows = 0;              // of the largest group
  std::int64_t cols = 0, slices = 0, width = 0;

  GroupOperand() = default;
  // `largest`: the view of the group with the most rows.
  GroupOperand(const GroupView* of_groups, const MatrixView& largest)
      : groups(of_groups),
        rows(largest.rows),
        cols(largest.cols),
        slices(largest.slice_count()),
        width(largest.slice_width) {}
};

// As OperatorCall, of many groups.
struct GroupCall {
  std::span<const GroupOperand> inputs, outputs;
  std::int64_t groups = 0;
  const Attributes& attributes;
  const StepSeed& run;
};

}  // namespace ooc::cuda
