// Signs as bits: what the backward of relu needs of its output, in a 32nd of the memory.
#include "kernels/rows/cpu_row_kernels.h"
#include "kernels/rows/cpu_traversal.h"
#include "kernels/spec/row_kernels.h"
#include "storage/format/tensor_layout.h"

namespace ooc::cpu {
namespace {

static_assert(kBitsPerWord == kStripCols && kSliceWidth % kStripCols == 0,
              "a strip of columns is a word");

// The words that belong to a strip of columns, row by row.
StripRows<std::int32_t> words_of(const MatrixView& bits, const Strip& strip) {
  return {bits, strip.first_column / kBitsPerWord};
}

}  // namespace

template <class T>
void positive_bits(const OperatorCall& call) {
  const MatrixView& x = call.inputs[0];
  for_each_strip(x, [&](const Strip& strip) {
    const StripRows<T> xs(x, strip);
    const StripRows<std::int32_t> words = words_of(call.outputs[0], strip);
    with_columns(strip.cols, [&](auto cols) {
      for (std::int64_t i = 0; i < x.rows; ++i) {
        const T* x_row = xs.row(i);
        std::uint32_t word = 0;
        for (std::uint32_t c = 0; c < cols; ++c) word |= x_row[c] > T{0} ? 1u << c : 0u;
        *words.row(i) = static_cast<std::int32_t>(word);
      }
    });
  });
}

template <class T>
void keep_bits(const OperatorCall& call) {
  const MatrixView& g = call.inputs[0];
  for_each_strip(g, [&](const Strip& strip) {
    const StripRows<T> gs(g, strip);
    const StripRows<T> ys(call.outputs[0], strip);
    const StripRows<std::int32_t> words = words_of(call.inputs[1], strip);
    with_columns(strip.cols, [&](auto cols) {
      for (std::int64_t i = 0; i < g.rows; ++i) {
        const auto word = static_cast<std::uint32_t>(*words.row(i));
        const T* __restrict g_row = gs.row(i);
        T* __restrict y_row = ys.row(i);
        for (std::uint32_t c = 0; c < cols; ++c) y_row[c] = (word & 1u << c) != 0 ? g_row[c] : T{0};
      }
    });
  });
}

#define OOC_INSTANTIATE(T)                             \
  template void positive_bits<T>(const OperatorCall&); \
  template void keep_bits<T>(const OperatorCall&);
OOC_INSTANTIATE(float)
OOC_INSTANTIATE(double)
#undef OOC_INSTANTIATE

}  // namespace ooc::cpu
