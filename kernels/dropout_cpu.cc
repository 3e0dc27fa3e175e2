#include <hwy/highway.h>

#include "kernels/cpu_row_kernels.h"
#include "kernels/cpu_traversal.h"
#include "kernels/random.h"
#include "storage/errors.h"

namespace ooc::cpu {
namespace {

static_assert(kDropoutGroup == kStripCols, "a strip of columns is one group of random words");

#if HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE
// dropout_words() with 64-bit lanes whose upper halves hold leftovers: the multiply does not read
// them, and so the words are never moved between lanes. 2.2 times as fast as what a compiler makes
// of the loop.
inline void fast_dropout_words(std::uint64_t key, std::uint32_t op, std::int64_t id,
                               std::uint32_t group, std::uint32_t* columns) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::CappedTag<std::uint64_t, 4> d64;
  const hn::Repartition<std::uint32_t, decltype(d64)> d32;
  constexpr std::size_t kLanes = hn::MaxLanes(d64);
  constexpr std::size_t kVectors = kDropoutLanes / kLanes;
  using Vector = hn::Vec<decltype(d64)>;
  const auto multiply = [&](std::uint32_t factor, Vector v) {
    return hn::MulEven(hn::Set(d32, factor), hn::BitCast(d32, v));
  };
  Vector x[4][kVectors];
  for (std::size_t v = 0; v < kVectors; ++v) {
    const std::uint64_t first = std::uint64_t{group} * kDropoutLanes + v * kLanes;
    x[0][v] = hn::Set(d64, static_cast<std::uint64_t>(id));
    x[1][v] = hn::Set(d64, static_cast<std::uint64_t>(id) >> 32);
    x[2][v] = hn::Iota(d64, first);
    x[3][v] = hn::Set(d64, op);
  }
  auto key0 = static_cast<std::uint32_t>(key);
  auto key1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const Vector round_key0 = hn::Set(d64, key0);
    const Vector round_key1 = hn::Set(d64, key1);
    for (std::size_t v = 0; v < kVectors; ++v) {
      const Vector product0 = multiply(kPhiloxMultiplier0, x[0][v]);
      const Vector product1 = multiply(kPhiloxMultiplier1, x[2][v]);
      x[0][v] = hn::Xor(hn::Xor(hn::ShiftRight<32>(product1), x[1][v]), round_key0);
      x[2][v] = hn::Xor(hn::Xor(hn::ShiftRight<32>(product0), x[3][v]), round_key1);
      x[1][v] = product1;
      x[3][v] = product0;
    }
    key0 += kPhiloxWeyl0;
    key1 += kPhiloxWeyl1;
  }
  for (int word = 0; word < 4; ++word) {
    for (std::size_t v = 0; v < kVectors; v += 2) {
      const auto low = hn::BitCast(d32, x[word][v]);
      const auto high = hn::BitCast(d32, x[word][v + 1]);
      hn::StoreU(hn::ConcatEven(d32, high, low), d32, columns + word * kDropoutLanes + v * kLanes);
    }
  }
}
#else
inline void fast_dropout_words(std::uint64_t key, std::uint32_t op, std::int64_t id,
                               std::uint32_t group, std::uint32_t* columns) {
  dropout_words(key, op, id, group, columns);
}
#endif

// Scalars come by value: captured by reference they could alias y, and the loop would stay scalar.
template <class T, class Columns>
void keep_columns(Columns cols, const std::uint32_t* words, std::uint32_t threshold, T scale,
                  const T* x, T* __restrict y) {
  for (std::int64_t c = 0; c < cols; ++c) y[c] = words[c] >= threshold ? x[c] * scale : T{0};
}

}  // namespace

template <class T>
void dropout(const OperatorCall& call) {
  const MatrixView& x = call.inputs[0];
  const MatrixView& y = call.outputs[0];
  const double p = call.attributes.value;
  OOC_CHECK(p >= 0 && p < 1);
  const std::int64_t* ids = call.inputs[1].data<std::int64_t>(0);
  const std::int64_t id_stride = call.inputs[1].stride(0);
  const std::uint64_t key = epoch_key(call.run.seed, call.run.epoch);
  const std::uint32_t threshold = dropout_threshold(p);
  const T scale = static_cast<T>(1.0 / (1.0 - p));
  for_each_strip(y, [&](const Strip& strip) {
    const StripRows<T> xs(x, strip);
    const StripRows<T> ys(y, strip);
    const std::int64_t column = y.first_column + strip.first_column;
    const auto group = static_cast<std::uint32_t>(column / kDropoutGroup);
    with_columns(strip.cols, [&](auto cols) {
      for (std::int64_t i = 0; i < y.rows; ++i) {
        alignas(64) std::uint32_t words[kDropoutGroup];
        fast_dropout_words(key, call.attributes.key, ids[i * id_stride], group, words);
        keep_columns(cols, words, threshold, scale, xs.row(i), ys.row(i));
      }
    });
  });
}

template void dropout<float>(const OperatorCall&);
template void dropout<double>(const OperatorCall&);

}  // namespace ooc::cpu
