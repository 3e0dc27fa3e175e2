#include <vector>

#include "kernels/dense/blas.h"
#include "kernels/rows/cpu_row_kernels.h"
#include "kernels/rows/cpu_traversal.h"
#include "storage/format/tensor_layout.h"

namespace ooc::cpu {

namespace {

// What one gemm takes. Shapes of calls follow from the operands' and from OpenBLAS's kernels alone,
// so that the same operands give the same bits.
struct Tile {
  std::int64_t rows = 0;
  std::int64_t x_cols = 0;
  std::int64_t y_cols = 0;  // of matmul's output, of matmul_reduce's second operand
  bool turns = false;       // a transposed parameter, block by block
};

// The columns of Y or G that a tile of X is multiplied with before the next is copied.
constexpr std::int64_t kGroupCols = 256;

// Slices that a tile holds several of are copied side by side, into 512 KiB of floats at most: what
// OpenBLAS packs is used for more columns then, and rows come from memory in order. Where it takes
// small products as they lie, they stay as large as that allows.
Tile tile_of_slices() {
  if (multiplies_unpacked()) return {256, 2 * kSliceWidth, kSliceWidth, true};
  return {256, kGroupCols, kGroupCols, false};
}

// With one slice on either side, copying costs more than it saves.
Tile tile_in_place() { return {512, kSliceWidth, kSliceWidth, multiplies_unpacked()}; }

bool has_one_slice(const MatrixView& x, const MatrixView& y) {
  return x.slice_count() == 1 || y.slice_count() == 1;
}

// Rows a tile holds, from `first` on.
MatrixView rows_of(MatrixView view, std::int64_t first, std::int64_t rows) {
  view.row_offset += first;
  view.rows = std::min(rows, view.rows - first);
  return view;
}

// Calls body(view) for slices side by side: as many as have up to `cols` columns, and at least one.
template <class Body>
void for_each_group(const MatrixView& view, std::int64_t cols, Body&& body) {
  const std::int64_t slices = view.slice_count();
  const std::int64_t step = std::max<std::int64_t>(1, cols / view.slice_width);
  for (std::int64_t first = 0; first < slices; first += step) {
    MatrixView group = view;
    const std::int64_t column = first * view.slice_width;
    group.slices.first += first * view.slices.slice_stride;
    group.first_column += column;
    group.cols = view.cols - column;
    if (first + step < slices) {
      group.cols = step * view.slice_width;
      group.last_stride = view.slice_width;
      group.slices.last = group.slices.first + (step - 1) * view.slices.slice_stride;
    }
    body(group);
  }
}

// A view's columns side by side: where they lie, if that is one slice, otherwise in scratch.
template <class T>
struct Panel {
  T* data = nullptr;
  std::int64_t stride = 0;
};

template <class T>
Panel<T> panel_of(const MatrixView& view, T* scratch) {
  if (view.slice_count() == 1) return {view.data<T>(0), view.stride(0)};
  return {scratch, view.cols};
}

// Calls body(row, copy, cols) for every row of every slice of a view that has its panel in scratch.
template <class T, class Body>
void for_each_copied_row(const MatrixView& view, T* scratch, Body&& body) {
  if (view.slice_count() == 1) return;
  for_each_strip(view, [&](const Strip& strip) {
    const StripRows<T> rows(view, strip);
    T* const copies = scratch + strip.first_column;
    with_columns(strip.cols, [&](auto cols) {
      for (std::int64_t i = 0; i < view.rows; ++i) {
        body(rows.row(i), copies + i * view.cols, cols);
      }
    });
  });
}

template <class T>
Panel<T> copy_in(const MatrixView& view, T* scratch) {
  for_each_copied_row(view, scratch, [](const T* row, T* copy, auto cols) {
    std::copy_n(row, std::int64_t{cols}, copy);
  });
  return panel_of(view, scratch);
}

template <class T>
void copy_out(const MatrixView& view, T* scratch) {
  for_each_copied_row(view, scratch, [](T* row, const T* copy, auto cols) {
    std::copy_n(copy, std::int64_t{cols}, row);
  });
}

// Of the calling thread: what a tile copies.
template <class T>
struct Scratch {
  explicit Scratch(const Tile& tile) {
    thread_local std::vector<T> values;
    const auto copied = [&](std::int64_t cols) {
      return cols > kSliceWidth ? tile.rows * cols : 0;
    };
    const std::int64_t x_count = copied(tile.x_cols);
    const std::int64_t w_count = tile.turns ? tile.x_cols * tile.y_cols : 0;
    const auto count = static_cast<std::size_t>(x_count + w_count + copied(tile.y_cols));
    if (values.size() < count) values.resize(count);
    x = values.data();
    w = x + x_count;
    y = w + w_count;
  }
  T* x;
  T* w;  // a block of a transposed parameter
  T* y;
};

// to[k, n] = the transpose of n rows of a parameter. OpenBLAS takes small products as they lie, but
// for those with a transposed operand.
template <class T>
void transpose_block(const T* from, std::int64_t stride, std::int64_t k, std::int64_t n, T* to) {
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = 0; i < k; ++i) to[i * n + j] = from[j * stride + i];
  }
}

// One tile's rows of Y = X W, or X W^T.
template <class T>
void multiply_tile(const MatrixView& x, const MatrixView& w, bool transpose, const MatrixView& y,
                   const Tile& tile) {
  const Scratch<T> scratch(tile);
  const std::int64_t ldw = w.stride(0);
  const auto multiply = [&](const MatrixView& xs, Panel<T> a, const MatrixView& ys, Panel<T> c) {
    const std::int64_t k = xs.first_column - x.first_column;
    const std::int64_t m = ys.first_column - y.first_column;
    const T* b = w.data<T>(0) + (transpose ? m * ldw + k : k * ldw + m);
    std::int64_t ldb = ldw;
    const bool turn = transpose && tile.turns && xs.cols <= tile.x_cols && ys.cols <= tile.y_cols;
    if (turn) {
      transpose_block(b, ldw, xs.cols, ys.cols, scratch.w);
      b = scratch.w;
      ldb = ys.cols;
    }
    gemm(Gemm<T>{.transpose_b = transpose && !turn ? Transpose::kYes : Transpose::kNo,
                 .m = x.rows,
                 .n = ys.cols,
                 .k = xs.cols,
                 .a = a.data,
                 .lda = a.stride,
                 .b = b,
                 .ldb = ldb,
                 .c = c.data,
                 .ldc = c.stride,
                 .accumulate = k > 0});
  };
  for_each_group(y, kGroupCols, [&](const MatrixView& group) {
    for_each_group(x, tile.x_cols, [&](const MatrixView& xs) {
      const Panel<T> a = copy_in(xs, scratch.x);
      for_each_group(group, tile.y_cols,
                     [&](const MatrixView& ys) { multiply(xs, a, ys, panel_of(ys, scratch.y)); });
    });
    if (tile.y_cols == kGroupCols) copy_out(group, scratch.y);
  });
}

// R += X^T G for one tile's rows.
template <class T>
void reduce_tile(const MatrixView& x, const MatrixView& g, const MatrixView& r, const Tile& tile) {
  const Scratch<T> scratch(tile);
  const auto reduce = [&](const MatrixView& xs, Panel<T> a, const MatrixView& gs, Panel<T> b) {
    const std::int64_t row = xs.first_column - x.first_column;
    const std::int64_t column = gs.first_column - g.first_column;
    gemm(Gemm<T>{.transpose_a = Transpose::kYes,
                 .m = xs.cols,
                 .n = gs.cols,
                 .k = x.rows,
                 .a = a.data,
                 .lda = a.stride,
                 .b = b.data,
                 .ldb = b.stride,
                 .c = r.data<T>(0) + row * r.stride(0) + column,
                 .ldc = r.stride(0),
                 .accumulate = true});
  };
  for_each_group(g, kGroupCols, [&](const MatrixView& group) {
    if (tile.y_cols == kGroupCols) copy_in(group, scratch.y);
    for_each_group(x, tile.x_cols, [&](const MatrixView& xs) {
      const Panel<T> a = copy_in(xs, scratch.x);
      for_each_group(group, tile.y_cols,
                     [&](const MatrixView& gs) { reduce(xs, a, gs, panel_of(gs, scratch.y)); });
    });
  });
}

}  // namespace

template <class T>
void matmul(const OperatorCall& call) {
  const MatrixView& x = call.inputs[0];
  const MatrixView& y = call.outputs[0];
  const Tile tile = has_one_slice(x, y) ? tile_in_place() : tile_of_slices();
  for (std::int64_t first = 0; first < x.rows; first += tile.rows) {
    multiply_tile<T>(rows_of(x, first, tile.rows), call.inputs[1], call.attributes.transpose,
                     rows_of(y, first, tile.rows), tile);
  }
}

template <class T>
void matmul_reduce(const OperatorCall& call) {
  const MatrixView& x = call.inputs[0];
  const MatrixView& g = call.inputs[1];
  // A sum over rows goes over X's again for every few columns: wide ones, that came from memory.
  const bool in_place = has_one_slice(x, g) && x.cols <= kGroupCols;
  const Tile tile = in_place ? tile_in_place() : tile_of_slices();
  for (std::int64_t first = 0; first < x.rows; first += tile.rows) {
    reduce_tile<T>(rows_of(x, first, tile.rows), rows_of(g, first, tile.rows), call.outputs[0],
                   tile);
  }
}

template <class T>
void bias(const OperatorCall& call) {
  const MatrixView& x = call.inputs[0];
  const MatrixView& y = call.outputs[0];
  for_each_strip(y, [&](const Strip& strip) {
    const StripRows<T> xs(x, strip);
    const StripRows<T> ys(y, strip);
    const T* __restrict b = parameter_row<T>(call.inputs[1], strip);
    with_columns(strip.cols, [&](auto cols) {
      for (std::int64_t i = 0; i < y.rows; ++i) {
        const T* __restrict x_row = xs.row(i);
        T* __restrict y_row = ys.row(i);
        for (std::int64_t c = 0; c < cols; ++c) y_row[c] = x_row[c] + b[c];
      }
    });
  });
}

template <class T>
void column_sum(const OperatorCall& call) {
  const MatrixView& x = call.inputs[0];
  for_each_strip(x, [&](const Strip& strip) {
    const StripRows<T> xs(x, strip);
    T* __restrict sums = parameter_row<T>(call.outputs[0], strip);
    with_columns(strip.cols, [&](auto cols) {
      for (std::int64_t i = 0; i < x.rows; ++i) {
        const T* __restrict x_row = xs.row(i);
        for (std::int64_t c = 0; c < cols; ++c) sums[c] += x_row[c];
      }
    });
  });
}

#define OOC_INSTANTIATE(T)                             \
  template void matmul<T>(const OperatorCall&);        \
  template void matmul_reduce<T>(const OperatorCall&); \
  template void bias<T>(const OperatorCall&);          \
  template void column_sum<T>(const OperatorCall&);
OOC_INSTANTIATE(float)
OOC_INSTANTIATE(double)
#undef OOC_INSTANTIATE

}  // namespace ooc::cpu
