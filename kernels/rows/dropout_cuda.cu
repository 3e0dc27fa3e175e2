#include "kernels/rows/cuda_row_kernels.h"
#include "kernels/rows/map_cuda.h"
#include "kernels/spec/random.h"
#include "storage/base/errors.h"
#include "storage/format/tensor_layout.h"

namespace ooc::cuda {
namespace {

static_assert(kDropoutGroup == kSliceWidth, "a slice of columns is one group of random words");

// A column's word, as dropout_words() has it.
__device__ std::uint32_t word_of(std::uint64_t key, std::uint32_t op, std::int64_t id,
                                 std::uint32_t group, std::uint32_t col) {
  constexpr std::uint32_t kHalf = kDropoutGroup / 2;
  const std::uint32_t at = col % kHalf;
  std::uint32_t words[4][1] = {{static_cast<std::uint32_t>(id)},
                               {static_cast<std::uint32_t>(static_cast<std::uint64_t>(id) >> 32)},
                               {group * kDropoutLanes + at % kDropoutLanes},
                               {op}};
  philox4x32<1>(words, key);
  const std::uint32_t which = at / kDropoutLanes;
  const std::uint32_t word = which < 2 ? (which == 0 ? words[0][0] : words[1][0])
                                       : (which == 2 ? words[2][0] : words[3][0]);
  return col < kHalf ? word : word << 16;
}

template <class T>
__global__ void __launch_bounds__(kThreads, 4)
    drop(const GroupView* y, const GroupView* x, const GroupView* ids, std::uint64_t key,
         std::uint32_t op, std::uint32_t threshold, T scale) {
  const GroupView& view = y[blockIdx.z];
  const SliceRows<T> to(view, blockIdx.y);
  const SliceRows<const T> from(x[blockIdx.z], blockIdx.y);
  const SliceRows<const std::int64_t> id(ids[blockIdx.z], 0);
  const auto group = static_cast<std::uint32_t>(view.first_column / kDropoutGroup) + blockIdx.y;
  for_each_element(view, [&](std::int64_t row, std::int64_t col) {
    const std::uint32_t word = word_of(key, op, id(row, 0), group, static_cast<std::uint32_t>(col));
    to(row, col) = word >= threshold ? from(row, col) * scale : T{0};
  });
}

}  // namespace

template <class T>
void dropout(const GroupCall& call, cudaStream_t stream) {
  const GroupOperand& y = call.outputs[0];
  const double p = call.attributes.value;
  OOC_CHECK(p >= 0 && p < 1);
  launch(drop<T>, shape_for(call, y), stream, y.groups, call.inputs[0].groups,
         call.inputs[1].groups, epoch_key(call.run.seed, call.run.epoch), call.attributes.key,
         dropout_threshold(p), static_cast<T>(dropout_scale(p)));
}

template void dropout<float>(const GroupCall&, cudaStream_t);
template void dropout<double>(const GroupCall&, cudaStream_t);

}  // namespace ooc::cuda
