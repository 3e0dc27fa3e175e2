// How CPU row kernels walk their operands: strips of up to 32 columns of one slice, all rows of a
// strip before the next, so that an inner loop runs over contiguous columns and the compiler can
// vectorise it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <type_traits>

#include "kernels/spec/matrix_view.h"

namespace ooc {

inline constexpr std::int64_t kStripCols = 32;

struct Strip {
  std::int64_t slice = 0;
  std::int64_t offset = 0;        // of its first column inside the slice
  std::int64_t first_column = 0;  // inside the matrix
  std::int64_t cols = 0;
};

template <class Body>
void for_each_strip(const MatrixView& view, Body&& body) {
  for (std::int64_t slice = 0; slice < view.slice_count(); ++slice) {
    const std::int64_t slice_cols = view.slice_cols(slice);
    for (std::int64_t offset = 0; offset < slice_cols; offset += kStripCols) {
      body(Strip{slice, offset, slice * view.slice_width + offset,
                 std::min(kStripCols, slice_cols - offset)});
    }
  }
}

// The rows of one strip of a view.
template <class T>
class StripRows {
 public:
  StripRows(const MatrixView& view, const Strip& strip)
      : data_(view.data<T>(strip.slice) + strip.offset), stride_(view.stride(strip.slice)) {}
  // From a column on, to the end of its slice.
  StripRows(const MatrixView& view, std::int64_t column)
      : StripRows(view, Strip{column / view.slice_width, column % view.slice_width, column, 0}) {}
  T* row(std::int64_t i) const { return data_ + i * stride_; }

 private:
  T* data_;
  std::int64_t stride_;
};

// Columns of a matrix, from `first` on.
struct ColumnRange {
  const MatrixView& view;
  std::int64_t first = 0;
};

// Cuts `cols` columns that lie side by side in several matrices, at another place in each, into
// pieces of up to 32 that lie in one slice of every one. Calls body(offset, cols) for each.
template <class Body>
void for_each_piece(std::int64_t cols, std::initializer_list<ColumnRange> ranges, Body&& body) {
  for (std::int64_t offset = 0, piece = 0; offset < cols; offset += piece) {
    piece = std::min(kStripCols, cols - offset);
    for (const ColumnRange& range : ranges) {
      const std::int64_t width = range.view.slice_width;
      piece = std::min(piece, width - (range.first + offset) % width);
    }
    body(offset, piece);
  }
}

// The strip's columns of a one-slice operand's row: a parameter or a reduction.
template <class T>
T* parameter_row(const MatrixView& view, const Strip& strip, std::int64_t row = 0) {
  return view.data<T>(0) + row * view.stride(0) + strip.first_column;
}

// Calls body(cols) with a compile-time 32 where the strip is full.
template <class Body>
void with_columns(std::int64_t cols, Body&& body) {
  if (cols == kStripCols) {
    body(std::integral_constant<std::int64_t, kStripCols>{});
  } else {
    body(cols);
  }
}

// Y = op(X), element by element of one strip or piece.
template <class T, class Op>
void map_piece(StripRows<T> xs, StripRows<T> ys, std::int64_t rows, std::int64_t piece_cols,
               Op op) {
  with_columns(piece_cols, [&](auto cols) {
    for (std::int64_t i = 0; i < rows; ++i) {
      const T* __restrict x_row = xs.row(i);
      T* __restrict y_row = ys.row(i);
      for (std::int64_t c = 0; c < cols; ++c) y_row[c] = op(x_row[c]);
    }
  });
}

// Y = op(X), element by element.
template <class T, class Op>
void map_elements(const MatrixView& x, const MatrixView& y, Op op) {
  for_each_strip(y, [&](const Strip& strip) {
    map_piece<T>(StripRows<T>(x, strip), StripRows<T>(y, strip), y.rows, strip.cols, op);
  });
}

// Y = op(A, B), element by element.
template <class T, class Op>
void map_elements(const MatrixView& a, const MatrixView& b, const MatrixView& y, Op op) {
  for_each_strip(y, [&](const Strip& strip) {
    const StripRows<T> as(a, strip);
    const StripRows<T> bs(b, strip);
    const StripRows<T> ys(y, strip);
    with_columns(strip.cols, [&](auto cols) {
      for (std::int64_t i = 0; i < y.rows; ++i) {
        const T* __restrict a_row = as.row(i);
        const T* __restrict b_row = bs.row(i);
        T* __restrict y_row = ys.row(i);
        for (std::int64_t c = 0; c < cols; ++c) y_row[c] = op(a_row[c], b_row[c]);
      }
    });
  });
}

// Y = op(A, B, C), element by element.
template <class T, class Op>
void map_elements(const MatrixView& a, const MatrixView& b, const MatrixView& c,
                  const MatrixView& y, Op op) {
  for_each_strip(y, [&](const Strip& strip) {
    const StripRows<T> as(a, strip);
    const StripRows<T> bs(b, strip);
    const StripRows<T> cs(c, strip);
    const StripRows<T> ys(y, strip);
    with_columns(strip.cols, [&](auto cols) {
      for (std::int64_t i = 0; i < y.rows; ++i) {
        const T* __restrict a_row = as.row(i);
        const T* __restrict b_row = bs.row(i);
        const T* __restrict c_row = cs.row(i);
        T* __restrict y_row = ys.row(i);
        for (std::int64_t k = 0; k < cols; ++k) y_row[k] = op(a_row[k], b_row[k], c_row[k]);
      }
    });
  });
}

// Sum over c < cols of f(c) in eight lanes: its order depends on cols only.
template <class Sum = double, class Cols, class F>
Sum lane_sum(Cols cols, F&& f) {
  constexpr std::int64_t kLanes = 8;
  Sum lanes[kLanes] = {};
  const std::int64_t whole = cols / kLanes * kLanes;
  if constexpr (!std::is_same_v<Cols, std::int64_t> && sizeof(lanes) <= 32) {
    // Where cols is a constant the compiler makes scalars of the array: one vector stays one.
    typedef Sum Vector __attribute__((vector_size(sizeof(lanes))));
    Vector sums = {};
    for (std::int64_t c = 0; c < whole; c += kLanes) {
      sums += Vector{f(c), f(c + 1), f(c + 2), f(c + 3), f(c + 4), f(c + 5), f(c + 6), f(c + 7)};
    }
    std::memcpy(lanes, &sums, sizeof lanes);
  } else {
    for (std::int64_t c = 0; c < whole; c += kLanes) {
      for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += f(c + lane);
    }
  }
  for (std::int64_t lane = 0; lane < cols % kLanes; ++lane) lanes[lane] += f(whole + lane);
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
         ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

// The largest of f(c) over c < cols and `least`, in eight lanes. NaNs are passed over.
template <class T, class F>
T lane_max(std::int64_t cols, T least, F&& f) {
  constexpr std::int64_t kLanes = 8;
  T lanes[kLanes];
  std::fill_n(lanes, kLanes, least);
  const std::int64_t whole = cols / kLanes * kLanes;
  for (std::int64_t c = 0; c < whole; c += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const T value = f(c + lane);
      lanes[lane] = value > lanes[lane] ? value : lanes[lane];
    }
  }
  for (std::int64_t c = whole; c < cols; ++c) lanes[0] = f(c) > lanes[0] ? f(c) : lanes[0];
  // Without branches, which nothing predicts.
  for (std::int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::int64_t lane = 0; lane < half; ++lane) {
      const T other = lanes[lane + half];
      lanes[lane] = other > lanes[lane] ? other : lanes[lane];
    }
  }
  return lanes[0];
}

}  // namespace ooc
