#include <cstring>

#include "kernels/rows/cpu_row_kernels.h"
#include "kernels/rows/cpu_traversal.h"

namespace ooc::cpu {
namespace {

template <class E>
void copy_strips(const MatrixView& x, const MatrixView& y) {
  for_each_strip(y, [&](const Strip& strip) {
    const StripRows<E> from(x, strip);
    const StripRows<E> to(y, strip);
    for (std::int64_t i = 0; i < y.rows; ++i) {
      std::memcpy(to.row(i), from.row(i), static_cast<std::size_t>(strip.cols) * sizeof(E));
    }
  });
}

}  // namespace

template <class T>
void copy(const OperatorCall& call) {
  copy_strips<T>(call.inputs[0], call.outputs[0]);
}

template <class T>
void copy_ids(const OperatorCall& call) {
  copy_strips<std::int64_t>(call.inputs[0], call.outputs[0]);
}

template <class T>
void first_rows(const OperatorCall& call) {
  const MatrixView &x = call.inputs[0], &y = call.outputs[0];
  switch (dtype_bytes(x.dtype)) {
    case 8:
      return copy_strips<std::uint64_t>(x, y);
    case 4:
      return copy_strips<std::uint32_t>(x, y);
    case 2:
      return copy_strips<std::uint16_t>(x, y);
    default:
      return copy_strips<std::uint8_t>(x, y);
  }
}

template <class T>
void extend_rows(const OperatorCall& call) {
  first_rows<T>(call);
}

template <class T>
void edge_key(const OperatorCall& call) {
  const MatrixView& keys = call.outputs[0];
  const std::int64_t rows = keys.rows, stride = keys.stride(0);
  for (std::int64_t column = 0; column < keys.cols; ++column) {
    const MatrixView& part = call.inputs[static_cast<std::size_t>(column)];
    const std::int64_t* from = part.data<std::int64_t>(0);
    const std::int64_t from_stride = part.stride(0);
    std::int64_t* to = keys.data<std::int64_t>(0) + column;
    for (std::int64_t i = 0; i < rows; ++i) to[i * stride] = from[i * from_stride];
  }
}

#define OOC_INSTANTIATE(T)                           \
  template void copy<T>(const OperatorCall&);        \
  template void copy_ids<T>(const OperatorCall&);    \
  template void first_rows<T>(const OperatorCall&);  \
  template void extend_rows<T>(const OperatorCall&); \
  template void edge_key<T>(const OperatorCall&);
OOC_INSTANTIATE(float)
OOC_INSTANTIATE(double)
#undef OOC_INSTANTIATE

}  // namespace ooc::cpu
