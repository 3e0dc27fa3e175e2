// Random numbers as a function of (seed, stream, index): no state, so any thread may compute any of
// them and the result never depends on the schedule.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>

namespace ooc {

class CounterRandom {
 public:
  // `stream` keeps different uses of one seed apart.
  CounterRandom(std::uint64_t seed, std::uint64_t stream) : key_(mix(mix(seed) + stream)) {}

  // 64 independent bits for each index.
  std::uint64_t bits(std::uint64_t index) const {
    return mix(mix(index * 0x9e3779b97f4a7c15u + key_) ^ key_);
  }

  // Below `bound` (at most 2^63), without visible bias: 128-bit multiply, bias below 2^-64 * bound.
  std::int64_t below(std::uint64_t index, std::int64_t bound) const {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::int64_t>((static_cast<Wide>(bits(index)) * static_cast<Wide>(bound)) >>
                                     64);
  }

  // In [0, 1).
  double uniform(std::uint64_t index) const {
    return static_cast<double>(bits(index) >> 11) * 0x1p-53;
  }

  // Two independent standard normals for each index (Box and Muller).
  void normals(std::uint64_t index, float& first, float& second) const {
    const std::uint64_t word = bits(index);
    const double radius_uniform = (static_cast<double>(word >> 32) + 0.5) * 0x1p-32;
    const double turn = static_cast<double>(word & 0xffffffffu) * 0x1p-32;
    const double radius = std::sqrt(-2.0 * std::log(radius_uniform));
    first = static_cast<float>(radius * std::cos(2 * std::numbers::pi * turn));
    second = static_cast<float>(radius * std::sin(2 * std::numbers::pi * turn));
  }

  // The row of a matrix of such numbers times `scale`, which has as many columns as `out`.
  void normal_row(std::uint64_t row, float scale, std::span<float> out) const {
    const std::uint64_t pairs = (out.size() + 1) / 2;
    for (std::uint64_t pair = 0; pair < pairs; ++pair) {
      float first = 0, second = 0;
      normals(row * pairs + pair, first, second);
      out[2 * pair] = scale * first;
      if (2 * pair + 1 < out.size()) out[2 * pair + 1] = scale * second;
    }
  }

 private:
  // The finaliser of SplitMix64.
  static std::uint64_t mix(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }

  std::uint64_t key_;
};

}  // namespace ooc
