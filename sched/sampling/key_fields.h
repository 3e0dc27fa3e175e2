// Three numbers as one 64-bit word, in whose order they are sorted outside memory
// (storage/edges/sorted_runs.h). What sampling sorts:
//   a request        vertex, batch, the vertex' number in the batch
//   a sampled edge   neighbour, batch, number of who asked; once both ends have numbers: batch,
//   number of who
//                    asked, the neighbour's number
//   a row            batch, the vertex' number in the batch, its place
#pragma once

#include <bit>
#include <cstdint>

#include "storage/base/errors.h"

namespace ooc {

class KeyFields {
 public:
  // Numbers below `first`, `second` and `third`, each at least 1. They must fit().
  KeyFields(std::uint64_t first, std::uint64_t second, std::uint64_t third)
      : second_bits_(bits(second)), third_bits_(bits(third)) {
    OOC_CHECK(fit(first, second, third));
  }
  static bool fit(std::uint64_t first, std::uint64_t second, std::uint64_t third) {
    return bits(first) + bits(second) + bits(third) <= 64;
  }

  std::uint64_t key(std::uint64_t first, std::uint64_t second, std::uint64_t third) const {
    return shifted(first) | (second == 0 ? 0 : second << third_bits_) | third;
  }
  std::uint64_t first(std::uint64_t key) const {
    const int shift = second_bits_ + third_bits_;
    return shift >= 64 ? 0 : key >> shift;
  }
  std::uint64_t second(std::uint64_t key) const {
    return third_bits_ >= 64 ? 0 : key >> third_bits_ & mask(second_bits_);
  }
  std::uint64_t third(std::uint64_t key) const { return key & mask(third_bits_); }
  // Of the same first and second number: whether they are, and the least and the largest key.
  bool same_pair(std::uint64_t a, std::uint64_t b) const {
    return ((a ^ b) & ~mask(third_bits_)) == 0;
  }
  std::uint64_t first_of_pair(std::uint64_t key) const { return key & ~mask(third_bits_); }
  std::uint64_t last_of_pair(std::uint64_t key) const { return key | mask(third_bits_); }
  // The least and the largest key of a first number.
  std::uint64_t begin(std::uint64_t first) const { return shifted(first); }
  std::uint64_t last(std::uint64_t first) const {
    return shifted(first) | mask(second_bits_ + third_bits_);
  }

 private:
  static int bits(std::uint64_t count) { return static_cast<int>(std::bit_width(count - 1)); }
  static std::uint64_t mask(int bits) {
    return bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
  }
  std::uint64_t shifted(std::uint64_t first) const {
    return first == 0 ? 0 : first << (second_bits_ + third_bits_);
  }

  int second_bits_, third_bits_;
};

}  // namespace ooc
