// A matrix in slices for kernel tests, guarded: rows before and after the view and the padding
// columns hold poison, so a kernel that reads them as data yields NaN and one that writes them is
// caught by guards_hold().
#pragma once

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "kernels/spec/matrix_view.h"
#include "kernels/spec/operator.h"
#include "storage/format/tensor_layout.h"

namespace ooc::testing {

// Row-major values, the reference's side of every comparison.
struct Dense {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::vector<double> values;

  Dense(std::int64_t row_count, std::int64_t col_count)
      : rows(row_count),
        cols(col_count),
        values(static_cast<std::size_t>(row_count * col_count), 0.0) {}
  double& operator()(std::int64_t row, std::int64_t col) {
    return values[static_cast<std::size_t>(row * cols + col)];
  }
  double operator()(std::int64_t row, std::int64_t col) const {
    return values[static_cast<std::size_t>(row * cols + col)];
  }
};

// Uniform in [-1, 1), rounded to float so that both scalar types hold the same values.
inline Dense random_dense(std::int64_t rows, std::int64_t cols, unsigned seed) {
  std::mt19937_64 engine(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  Dense dense(rows, cols);
  for (double& value : dense.values) value = static_cast<float>(uniform(engine));
  return dense;
}

template <class T>
constexpr T poison() {
  if constexpr (std::numeric_limits<T>::has_quiet_NaN) {
    return std::numeric_limits<T>::quiet_NaN();
  } else {
    return static_cast<T>(0x5a);
  }
}

template <class T>
class SlicedMatrix {
 public:
  // A vertex operand: slices of kSliceWidth columns, `row_offset` rows before the view.
  static SlicedMatrix vertex(const Dense& dense, std::int64_t row_offset = 0) {
    return SlicedMatrix(dense, kSliceWidth, row_offset);
  }
  // A parameter or a reduction: one contiguous slice.
  static SlicedMatrix parameter(const Dense& dense) { return SlicedMatrix(dense, dense.cols, 0); }

  SlicedMatrix(SlicedMatrix&&) = default;

  const MatrixView& view() const { return view_; }
  // All that the view lies in.
  std::span<std::byte> memory() const { return {view_.slices.first, memory_.size() * sizeof(T)}; }

  Dense dense() const {
    Dense result(view_.rows, view_.cols);
    for (std::int64_t i = 0; i < view_.rows; ++i) {
      for (std::int64_t c = 0; c < view_.cols; ++c) result(i, c) = static_cast<double>(at(i, c));
    }
    return result;
  }

  // Everything outside the view's elements is as it was made.
  bool guards_hold() const {
    for (std::int64_t slice = 0; slice < view_.slice_count(); ++slice) {
      const T* chunk = view_.data<T>(slice) - view_.row_offset * view_.stride(slice);
      for (std::int64_t i = 0; i < chunk_elements(slice); ++i) {
        if (!is_element(slice, i) && std::memcmp(&chunk[i], &poison_, sizeof(T)) != 0) {
          return false;
        }
      }
    }
    return true;
  }

 private:
  static constexpr std::int64_t kRowsAfter = 2;

  SlicedMatrix(const Dense& dense, std::int64_t slice_width, std::int64_t row_offset) {
    view_.dtype = DTypeOf<T>::value;
    view_.rows = dense.rows;
    view_.cols = dense.cols;
    view_.slice_width = slice_width;
    view_.row_offset = row_offset;
    const std::int64_t last_cols = view_.slice_cols(view_.slice_count() - 1);
    const bool padded = slice_width == kSliceWidth && dense.cols >= 8;
    view_.last_stride = padded ? round_up(last_cols, 8) : last_cols;
    const std::int64_t slices = view_.slice_count();
    const std::int64_t full = slices > 1 ? chunk_elements(0) : 0;
    memory_.assign(static_cast<std::size_t>((slices - 1) * full + chunk_elements(slices - 1)),
                   poison_);
    auto* first = reinterpret_cast<std::byte*>(memory_.data());
    const std::int64_t stride = full * std::int64_t{sizeof(T)};
    view_.slices = {first, stride, first + (slices - 1) * stride};
    for (std::int64_t i = 0; i < dense.rows; ++i) {
      for (std::int64_t c = 0; c < dense.cols; ++c) at(i, c) = static_cast<T>(dense(i, c));
    }
  }

  std::int64_t chunk_elements(std::int64_t slice) const {
    return (view_.row_offset + view_.rows + kRowsAfter) * view_.stride(slice);
  }
  T& at(std::int64_t row, std::int64_t col) const {
    const std::int64_t slice = col / view_.slice_width;
    return view_.data<T>(slice)[row * view_.stride(slice) + col % view_.slice_width];
  }
  bool is_element(std::int64_t slice, std::int64_t index) const {
    const std::int64_t row = index / view_.stride(slice) - view_.row_offset;
    const std::int64_t col = index % view_.stride(slice);
    return row >= 0 && row < view_.rows && col < view_.slice_cols(slice);
  }

  T poison_ = poison<T>();
  MatrixView view_;
  std::vector<T> memory_;
};

}  // namespace ooc::testing
