// Operators that move ranges of columns.
#include "kernels/rows/cpu_row_kernels.h"
#include "kernels/rows/cpu_traversal.h"
#include "storage/base/errors.h"

namespace ooc::cpu {
namespace {

template <class T>
void copy_columns(const MatrixView& from, std::int64_t from_first, const MatrixView& to,
                  std::int64_t to_first, std::int64_t cols) {
  for_each_piece(
      cols, {{from, from_first}, {to, to_first}}, [&](std::int64_t offset, std::int64_t piece) {
        map_piece<T>(StripRows<T>(from, from_first + offset), StripRows<T>(to, to_first + offset),
                     to.rows, piece, [](T value) { return value; });
      });
}

template <class T>
void zero_columns(const MatrixView& y, std::int64_t first, std::int64_t cols) {
  for_each_piece(cols, {{y, first}}, [&](std::int64_t offset, std::int64_t piece) {
    const StripRows<T> ys(y, first + offset);
    for (std::int64_t i = 0; i < y.rows; ++i) std::fill_n(ys.row(i), piece, T{0});
  });
}

// Calls body(rows of a piece of `wide`, offset, cols) for the pieces of row i's own d columns, from
// type * d + first on: up to two, since they may lie in two slices.
template <class T, class Body>
void for_picked(const MatrixView& wide, std::int64_t first, std::int64_t cols, Body&& body) {
  const std::int64_t inside = wide.slice_width - first % wide.slice_width;
  const std::int64_t here = std::min(cols, inside);
  body(StripRows<T>(wide, first), std::int64_t{0}, here);
  if (here < cols) body(StripRows<T>(wide, first + here), here, cols - here);
}

// The types of a group's rows, each inside [0, types).
class RowTypes {
 public:
  RowTypes(const MatrixView& view, std::int64_t types)
      : data_(view.data<std::int32_t>(0)), stride_(view.stride(0)), types_(types) {}
  std::int64_t operator[](std::int64_t row) const {
    const std::int64_t type = data_[row * stride_];
    OOC_CHECK(type >= 0 && type < types_);
    return type;
  }

 private:
  const std::int32_t* data_;
  std::int64_t stride_;
  std::int64_t types_;
};

}  // namespace

template <class T>
void concat(const OperatorCall& call) {
  const MatrixView& a = call.inputs[0];
  const MatrixView& b = call.inputs[1];
  copy_columns<T>(a, 0, call.outputs[0], 0, a.cols);
  copy_columns<T>(b, 0, call.outputs[0], a.cols, b.cols);
}

template <class T>
void columns(const OperatorCall& call) {
  const MatrixView& y = call.outputs[0];
  copy_columns<T>(call.inputs[0], call.attributes.begin, y, 0, y.cols);
}

template <class T>
void place_columns(const OperatorCall& call) {
  const MatrixView& g = call.inputs[0];
  const MatrixView& dx = call.outputs[0];
  const std::int64_t begin = call.attributes.begin;
  zero_columns<T>(dx, 0, begin);
  copy_columns<T>(g, 0, dx, begin, g.cols);
  zero_columns<T>(dx, begin + g.cols, dx.cols - begin - g.cols);
}

template <class T>
void pick_type(const OperatorCall& call) {
  const MatrixView& x = call.inputs[0];
  const MatrixView& y = call.outputs[0];
  const RowTypes types(call.inputs[1], x.cols / y.cols);
  for_each_strip(y, [&](const Strip& strip) {
    const StripRows<T> ys(y, strip);
    for (std::int64_t i = 0; i < y.rows; ++i) {
      T* y_row = ys.row(i);
      for_picked<T>(x, types[i] * y.cols + strip.first_column, strip.cols,
                    [=](const StripRows<T>& xs, std::int64_t offset, std::int64_t cols) {
                      std::copy_n(xs.row(i), cols, y_row + offset);
                    });
    }
  });
}

template <class T>
void place_type(const OperatorCall& call) {
  const MatrixView& g = call.inputs[0];
  const MatrixView& dx = call.outputs[0];
  const RowTypes types(call.inputs[1], dx.cols / g.cols);
  zero_columns<T>(dx, 0, dx.cols);
  for_each_strip(g, [&](const Strip& strip) {
    const StripRows<T> gs(g, strip);
    for (std::int64_t i = 0; i < g.rows; ++i) {
      const T* g_row = gs.row(i);
      for_picked<T>(dx, types[i] * g.cols + strip.first_column, strip.cols,
                    [=](const StripRows<T>& dxs, std::int64_t offset, std::int64_t cols) {
                      std::copy_n(g_row + offset, cols, dxs.row(i));
                    });
    }
  });
}

#define OOC_INSTANTIATE(T)                             \
  template void concat<T>(const OperatorCall&);        \
  template void columns<T>(const OperatorCall&);       \
  template void place_columns<T>(const OperatorCall&); \
  template void pick_type<T>(const OperatorCall&);     \
  template void place_type<T>(const OperatorCall&);
OOC_INSTANTIATE(float)
OOC_INSTANTIATE(double)
#undef OOC_INSTANTIATE

}  // namespace ooc::cpu
