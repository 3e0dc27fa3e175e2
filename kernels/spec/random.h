// Counter-based random numbers: a value is a function of its coordinates, so nothing is stored and
// no schedule, budget or number of devices can change it.
//
// Philox4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC
// 2011.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/spec/host_device.h"

namespace ooc {

inline constexpr int kPhiloxRounds = 10;
inline constexpr std::uint32_t kPhiloxMultiplier0 = 0xD2511F53u;
inline constexpr std::uint32_t kPhiloxMultiplier1 = 0xCD9E8D57u;
inline constexpr std::uint32_t kPhiloxWeyl0 = 0x9E3779B9u;
inline constexpr std::uint32_t kPhiloxWeyl1 = 0xBB67AE85u;

// `Lanes` counters at once under one key, word by word (words[word][lane]), so that a compiler
// vectorises the rounds. Replaces the counters by their random words.
template <int Lanes>
OOC_HOST_DEVICE inline void philox4x32(std::uint32_t (&words)[4][Lanes], std::uint64_t key) {
  auto key0 = static_cast<std::uint32_t>(key);
  auto key1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < kPhiloxRounds; ++round) {
    for (int lane = 0; lane < Lanes; ++lane) {
      const std::uint64_t product0 = std::uint64_t{kPhiloxMultiplier0} * words[0][lane];
      const std::uint64_t product1 = std::uint64_t{kPhiloxMultiplier1} * words[2][lane];
      words[0][lane] = static_cast<std::uint32_t>(product1 >> 32) ^ words[1][lane] ^ key0;
      words[2][lane] = static_cast<std::uint32_t>(product0 >> 32) ^ words[3][lane] ^ key1;
      words[1][lane] = static_cast<std::uint32_t>(product1);
      words[3][lane] = static_cast<std::uint32_t>(product0);
    }
    key0 += kPhiloxWeyl0;
    key1 += kPhiloxWeyl1;
  }
}

// A bijection on 64 bits that mixes well (splitmix64's finaliser: Steele et al., OOPSLA 2014).
OOC_HOST_DEVICE inline std::uint64_t mix64(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// The key of all random streams of one epoch; an operator's number goes into the counter.
OOC_HOST_DEVICE inline std::uint64_t epoch_key(std::uint64_t seed, std::uint64_t epoch) {
  return mix64(mix64(seed) ^ epoch);
}

// A number in [0, 1) with 53 random bits, for element `index` of a stream.
OOC_HOST_DEVICE inline double uniform_double(std::uint64_t key, std::uint64_t index) {
  std::uint32_t words[4][1] = {
      {static_cast<std::uint32_t>(index)}, {static_cast<std::uint32_t>(index >> 32)}, {0}, {0}};
  philox4x32<1>(words, key);
  const std::uint64_t bits = (std::uint64_t{words[0][0]} << 21) ^ (words[1][0] >> 11);
  return static_cast<double>(bits) * 0x1p-53;
}

inline constexpr int kDropoutGroup = 32;  // columns that share kDropoutLanes counters
inline constexpr int kDropoutLanes = 4;

// The random words of 32 columns of one vertex, from column 32 * group, in the columns' order: 16
// bits each, the upper ones. Column 4 * w + lane gets the upper half of word w of counter `lane`,
// column 16 + 4 * w + lane the lower one. So a counter serves eight columns, and whole vectors of
// words lie as the columns do. What is below the 16 bits is not random in its own right.
OOC_HOST_DEVICE inline void dropout_words(std::uint64_t key, std::uint32_t op, std::int64_t id,
                                          std::uint32_t group, std::uint32_t* columns) {
  std::uint32_t words[4][kDropoutLanes];
  for (int lane = 0; lane < kDropoutLanes; ++lane) {
    words[0][lane] = static_cast<std::uint32_t>(id);
    words[1][lane] = static_cast<std::uint32_t>(static_cast<std::uint64_t>(id) >> 32);
    words[2][lane] = group * kDropoutLanes + static_cast<std::uint32_t>(lane);
    words[3][lane] = op;
  }
  philox4x32<kDropoutLanes>(words, key);
  for (int c = 0; c < kDropoutGroup / 2; ++c) {
    const std::uint32_t word = words[c / kDropoutLanes][c % kDropoutLanes];
    columns[c] = word;
    columns[kDropoutGroup / 2 + c] = word << 16;
  }
}

// Of 65,536 random values, how many drop an element: p, 0 <= p < 1, rounded, and never all.
OOC_HOST_DEVICE inline std::uint32_t dropout_steps(double p) {
  const auto steps = static_cast<std::uint32_t>(p * 65536.0 + 0.5);
  return steps < 65535 ? steps : 65535;
}

// An element is kept where its word is at or above the threshold, by its upper 16 bits.
OOC_HOST_DEVICE inline std::uint32_t dropout_threshold(double p) { return dropout_steps(p) << 16; }

// What is kept is multiplied by it, so that the mean stays: 1 / (1 - p), with p as rounded.
OOC_HOST_DEVICE inline double dropout_scale(double p) {
  return 65536.0 / static_cast<double>(65536 - dropout_steps(p));
}

}  // namespace ooc
