// How CPU kernels walk heads: groups of columns of equal width, side by side. A strip of columns is
// cut into its heads, and a row's part of one head is worked on with one factor.
#pragma once

#include <array>

#include "kernels/rows/cpu_traversal.h"

namespace ooc {

// Columns of one head inside a strip.
struct HeadPart {
  std::int64_t head = 0;
  std::int64_t offset = 0;  // of its first column inside the strip
  std::int64_t cols = 0;
  bool first = false;  // it begins with the head's first column
};

class HeadParts {
 public:
  HeadParts(const Strip& strip, std::int64_t head_width) : width_(0) {
    const std::int64_t end = strip.first_column + strip.cols;
    for (std::int64_t column = strip.first_column; column < end;) {
      const std::int64_t head = column / head_width;
      const std::int64_t stop = std::min(end, (head + 1) * head_width);
      parts_[static_cast<std::size_t>(count_++)] = {head, column - strip.first_column,
                                                    stop - column, column == head * head_width};
      width_ = count_ == 1 || width_ == stop - column ? stop - column : 0;
      column = stop;
    }
  }

  // Calls body(row, part, cols) for every part of every row; cols is a compile-time constant where
  // all parts are of one of the usual widths.
  template <class Body>
  void for_each_row(std::int64_t rows, Body&& body) const {
    const auto walk = [&]<class Cols>(Cols cols) {
      for (std::int64_t i = 0; i < rows; ++i) {
        for (int k = 0; k < count_; ++k) {
          const HeadPart& part = parts_[static_cast<std::size_t>(k)];
          if constexpr (std::is_same_v<Cols, std::int64_t>) {
            body(i, part, part.cols);
          } else {
            body(i, part, cols);
          }
        }
      }
    };
    switch (width_) {
      case 8:
        return walk(std::integral_constant<std::int64_t, 8>{});
      case 16:
        return walk(std::integral_constant<std::int64_t, 16>{});
      case 32:
        return walk(std::integral_constant<std::int64_t, 32>{});
      default:
        return walk(std::int64_t{0});
    }
  }

 private:
  std::array<HeadPart, kStripCols> parts_;
  int count_ = 0;
  std::int64_t width_;  // of all parts, 0 where they differ
};

// A value a row and head: element (row, head) of a narrow matrix.
template <class T>
class HeadValues {
 public:
  explicit HeadValues(const MatrixView& view)
      : view_(view), data_(view.data<T>(0)), stride_(view.stride(0)) {}
  T& operator()(std::int64_t row, std::int64_t head) const {
    if (head < view_.slice_width) return data_[row * stride_ + head];
    const std::int64_t slice = head / view_.slice_width;
    return view_.data<T>(slice)[row * view_.stride(slice) + head % view_.slice_width];
  }

 private:
  const MatrixView& view_;
  T* data_;
  std::int64_t stride_;
};

// Y = op(factor of the row's head, X), element by element; factor(row, head) gives it.
template <class T, class Factor, class Op>
void map_heads(const MatrixView& x, std::int64_t heads, const MatrixView& y, Factor factor, Op op) {
  for_each_strip(y, [&](const Strip& strip) {
    const StripRows<T> xs(x, strip);
    const StripRows<T> ys(y, strip);
    HeadParts(strip, y.cols / heads)
        .for_each_row(y.rows, [=](std::int64_t i, const HeadPart& part, auto cols) {
          const T f = factor(i, part.head);
          const T* __restrict x_row = xs.row(i) + part.offset;
          T* __restrict y_row = ys.row(i) + part.offset;
          for (std::int64_t c = 0; c < cols; ++c) y_row[c] = op(f, x_row[c]);
        });
  });
}

}  // namespace ooc
