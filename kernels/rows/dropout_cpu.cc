#include <hwy/highway.h>

#include <algorithm>

#include "kernels/rows/cpu_row_kernels.h"
#include "kernels/rows/cpu_traversal.h"
#include "kernels/spec/random.h"
#include "storage/base/errors.h"

namespace ooc::cpu {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

static_assert(kDropoutGroup == kStripCols, "a strip of columns is one group of random words");

constexpr int kRows = 2;  // whose words are drawn together: one row's rounds wait for each other

// A group's words of kRows rows as dropout_words() draws them, kDropoutGroup for each.
#if HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE
// With 64-bit lanes whose upper halves hold leftovers: the multiply does not read them, and so the
// words are never moved between lanes.
class DropoutWords {
 public:
  DropoutWords(std::uint64_t key, std::uint32_t op, std::uint32_t group) : op_(op), group_(group) {
    auto key0 = static_cast<std::uint32_t>(key);
    auto key1 = static_cast<std::uint32_t>(key >> 32);
    for (int round = 0; round < kPhiloxRounds; ++round) {
      keys_[round][0] = hn::Set(d64_, key0);
      keys_[round][1] = hn::Set(d64_, key1);
      key0 += kPhiloxWeyl0;
      key1 += kPhiloxWeyl1;
    }
  }

  void draw(const std::int64_t (&ids)[kRows], std::uint32_t* columns) const {
    Vector x[4][kVectors];
    for (std::size_t v = 0; v < kVectors; ++v) {
      const auto id = static_cast<std::uint64_t>(ids[v / kRowVectors]);
      x[0][v] = hn::Set(d64_, id);
      x[1][v] = hn::Set(d64_, id >> 32);
      x[2][v] = hn::Iota(d64_, std::uint64_t{group_} * kDropoutLanes + v % kRowVectors * kLanes);
      x[3][v] = hn::Set(d64_, op_);
    }
    for (const auto& key : keys_) {
      for (std::size_t v = 0; v < kVectors; ++v) {
        const Vector product0 = multiply(kPhiloxMultiplier0, x[0][v]);
        const Vector product1 = multiply(kPhiloxMultiplier1, x[2][v]);
        x[0][v] = hn::Xor3(hn::ShiftRight<32>(product1), x[1][v], key[0]);
        x[2][v] = hn::Xor3(hn::ShiftRight<32>(product0), x[3][v], key[1]);
        x[1][v] = product1;
        x[3][v] = product0;
      }
    }
    for (std::size_t row = 0; row < kRows; ++row) {
      std::uint32_t* half = columns + row * kDropoutGroup;
      for (std::size_t pair = 0; pair < 4 * kRowVectors; pair += 2) {  // in the words' order
        const auto vector = [&](std::size_t at) {
          const Vector lanes = x[at / kRowVectors][row * kRowVectors + at % kRowVectors];
          return hn::BitCast(d32_, lanes);
        };
        const auto words = hn::ConcatEven(d32_, vector(pair + 1), vector(pair));
        hn::StoreU(words, d32_, half + pair * kLanes);
        hn::StoreU(hn::ShiftLeft<16>(words), d32_, half + kDropoutGroup / 2 + pair * kLanes);
      }
    }
  }

 private:
  static constexpr hn::CappedTag<std::uint64_t, kDropoutLanes> d64_{};
  static constexpr hn::Repartition<std::uint32_t, decltype(d64_)> d32_{};
  using Vector = hn::Vec<decltype(d64_)>;
  static constexpr std::size_t kLanes = hn::MaxLanes(d64_);
  static constexpr std::size_t kRowVectors = kDropoutLanes / kLanes;
  static constexpr std::size_t kVectors = kRows * kRowVectors;

  static Vector multiply(std::uint32_t factor, Vector v) {
    return hn::MulEven(hn::Set(d32_, factor), hn::BitCast(d32_, v));
  }

  std::uint32_t op_, group_;
  Vector keys_[kPhiloxRounds][2];
};
#else
class DropoutWords {
 public:
  DropoutWords(std::uint64_t key, std::uint32_t op, std::uint32_t group)
      : key_(key), op_(op), group_(group) {}

  void draw(const std::int64_t (&ids)[kRows], std::uint32_t* columns) const {
    for (int row = 0; row < kRows; ++row) {
      dropout_words(key_, op_, ids[row], group_, columns + row * kDropoutGroup);
    }
  }

 private:
  std::uint64_t key_;
  std::uint32_t op_, group_;
};
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
  const T scale = static_cast<T>(dropout_scale(p));
  for_each_strip(y, [&](const Strip& strip) {
    const StripRows<T> xs(x, strip);
    const StripRows<T> ys(y, strip);
    const std::int64_t column = y.first_column + strip.first_column;
    const DropoutWords words(key, call.attributes.key,
                             static_cast<std::uint32_t>(column / kDropoutGroup));
    with_columns(strip.cols, [&](auto cols) {
      for (std::int64_t first = 0; first < y.rows; first += kRows) {
        alignas(64) std::uint32_t columns[kRows * kDropoutGroup];
        const std::int64_t last = std::min(first + kRows, y.rows) - 1;
        words.draw({ids[first * id_stride], ids[last * id_stride]}, columns);
        for (std::int64_t i = first; i <= last; ++i) {
          keep_columns(cols, columns + (i - first) * kDropoutGroup, threshold, scale, xs.row(i),
                       ys.row(i));
        }
      }
    });
  });
}

template void dropout<float>(const OperatorCall&);
template void dropout<double>(const OperatorCall&);

}  // namespace ooc::cpu
