// Splits made here rather than read: `--split 60/20/20 --split-seed N`.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ooc {

// Percent of the labelled vertices. What is left over is in no split.
struct SplitShares {
  double train = 0;
  double valid = 0;
  double test = 0;
};

// "60/20/20": three numbers, none negative, the first positive, together at most 100; or shares of
// one, as 0.6/0.2/0.2. Throws UsageError.
SplitShares parse_split_shares(const std::string& text);

// One byte a vertex, a value of enum Split. Vertices with a label of 0 or more are dealt by
// CounterRandom, the same for a seed on every machine; others are in no split. With n labelled
// vertices the first split gets n * train / 100, the first two together n * (train + valid) / 100,
// all three n * (train + valid + test) / 100, each rounded to the nearest, halves up. Throws
// DataError where a share above 0 comes to no vertex.
std::vector<std::uint8_t> random_split(std::span<const std::int32_t> labels,
                                       const SplitShares& shares, std::uint64_t seed);

}  // namespace ooc
