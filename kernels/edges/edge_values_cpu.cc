// Operators that only edges have: of a softmax over in-edges, masks of edges, winners of a maximum.
#include <vector>

#include "kernels/rows/cpu_heads.h"
#include "kernels/rows/cpu_row_kernels.h"
#include "kernels/spec/edge_coordinates.h"
#include "kernels/spec/element_math.h"
#include "storage/base/errors.h"

namespace ooc::cpu {
namespace {

constexpr int kLanes = 8;  // edges that draw their random words together

// keep[edge * heads + head]: 0 where dropped, otherwise dropout_scale(p).
template <class T>
void draw_masks(const OperatorCall& call, std::vector<T>& keep) {
  const MatrixView& keys = call.inputs[1];
  const std::int64_t heads = call.attributes.heads;
  const double p = call.attributes.value;
  OOC_CHECK(p >= 0 && p < 1);
  const std::uint64_t key = edge_mask_key(call.run.seed, call.run.epoch, call.attributes.key);
  const std::uint32_t threshold = dropout_threshold(p);
  const T scale = static_cast<T>(dropout_scale(p));
  const auto size = static_cast<std::size_t>(keys.rows * heads);
  if (keep.size() < size) keep.resize(size);
  const std::int64_t* data = keys.data<std::int64_t>(0);
  const std::int64_t stride = keys.stride(0);
  for (std::int64_t first = 0; first < keys.rows; first += kLanes) {
    const std::int64_t count = std::min<std::int64_t>(kLanes, keys.rows - first);
    for (std::int64_t head = 0; head < heads; head += kHeadsPerCounter) {
      std::uint32_t words[4][kLanes] = {};
      for (std::int64_t lane = 0; lane < count; ++lane) {
        for (int k = 0; k < 3; ++k) {
          words[k][lane] = static_cast<std::uint32_t>(data[(first + lane) * stride + k]);
        }
      }
      edge_mask_words(key, static_cast<std::uint32_t>(head / kHeadsPerCounter), words);
      const std::int64_t drawn = std::min<std::int64_t>(kHeadsPerCounter, heads - head);
      for (std::int64_t lane = 0; lane < count; ++lane) {
        T* edge = keep.data() + (first + lane) * heads + head;
        for (std::int64_t k = 0; k < drawn; ++k) {
          edge[k] = words[k][lane] >= threshold ? scale : T{0};
        }
      }
    }
  }
}

}  // namespace

template <class T>
void softmax_weight(const OperatorCall& call) {
  map_elements<T>(call.inputs[0], call.inputs[1], call.inputs[2], call.outputs[0],
                  [](T score, T largest, T sum) { return exponential(score - largest) / sum; });
}

template <class T>
void edge_dropout(const OperatorCall& call) {
  thread_local std::vector<T> keep;
  draw_masks(call, keep);
  const std::int64_t heads = call.attributes.heads;
  const T* masks = keep.data();
  map_heads<T>(
      call.inputs[0], heads, call.outputs[0],
      [=](std::int64_t i, std::int64_t head) { return masks[i * heads + head]; },
      [](T factor, T x) { return factor == T{0} ? T{0} : factor * x; });
}

template <class T>
void winner_key(const OperatorCall& call) {
  const MatrixView& keys = call.outputs[0];
  const std::int64_t rows = keys.rows, stride = keys.stride(0);
  const std::int64_t* source = call.inputs[0].data<std::int64_t>(0);
  const std::int64_t* index = call.inputs[1].data<std::int64_t>(0);
  const std::int64_t source_stride = call.inputs[0].stride(0);
  const std::int64_t index_stride = call.inputs[1].stride(0);
  std::int64_t* to = keys.data<std::int64_t>(0);
  for (std::int64_t i = 0; i < rows; ++i) {
    to[i * stride] = ooc::winner_key(source[i * source_stride], index[i * index_stride]);
  }
}

template <class T>
void select_winner(const OperatorCall& call) {
  const MatrixView& g = call.inputs[0];
  const MatrixView& winners = call.inputs[1];
  const MatrixView& y = call.outputs[0];
  const std::int64_t* keys = call.inputs[2].data<std::int64_t>(0);
  const std::int64_t key_stride = call.inputs[2].stride(0);
  const std::int64_t rows = y.rows;
  for_each_strip(y, [&](const Strip& strip) {
    const StripRows<T> gs(g, strip);
    const StripRows<std::int64_t> ws(winners, strip);
    const StripRows<T> ys(y, strip);
    with_columns(strip.cols, [&](auto cols) {
      for (std::int64_t i = 0; i < rows; ++i) {
        const std::int64_t key = keys[i * key_stride];
        const T* __restrict g_row = gs.row(i);
        const std::int64_t* __restrict w_row = ws.row(i);
        T* __restrict y_row = ys.row(i);
        for (std::int64_t c = 0; c < cols; ++c) y_row[c] = w_row[c] == key ? g_row[c] : T{0};
      }
    });
  });
}

#define OOC_INSTANTIATE(T)                              \
  template void softmax_weight<T>(const OperatorCall&); \
  template void edge_dropout<T>(const OperatorCall&);   \
  template void winner_key<T>(const OperatorCall&);     \
  template void select_winner<T>(const OperatorCall&);
OOC_INSTANTIATE(float)
OOC_INSTANTIATE(double)
#undef OOC_INSTANTIATE

}  // namespace ooc::cpu
