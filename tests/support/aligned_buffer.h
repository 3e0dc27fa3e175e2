// Memory that requests of a BlockIo may use, with helpers to fill and compare it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>

#include "storage/io/block_file.h"

namespace ooc::test {

class AlignedBuffer {
 public:
  // io_aligned(bytes) of them, all 0xee.
  explicit AlignedBuffer(std::size_t bytes)
      : bytes_(io_aligned(bytes)),
        data_(static_cast<std::byte*>(std::aligned_alloc(kIoAlignment, bytes_))) {
    std::memset(data_.get(), 0xee, bytes_);
  }
  std::byte* data() const { return data_.get(); }
  std::size_t size() const { return bytes_; }
  std::span<const std::byte> first(std::size_t bytes) const { return {data_.get(), bytes}; }

 private:
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };
  std::size_t bytes_;
  std::unique_ptr<std::byte[], Free> data_;
};

// The byte that belongs at `offset` of version `version` of a test's file.
inline std::byte pattern_byte(std::uint64_t offset, std::uint64_t version = 0) {
  return static_cast<std::byte>((offset + version * 77) * 0x9e3779b97f4a7c15u >> 56);
}

inline void fill_pattern(std::span<std::byte> out, std::uint64_t offset,
                         std::uint64_t version = 0) {
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = pattern_byte(offset + i, version);
}

inline bool is_zero(std::span<const std::byte> data) {
  return std::all_of(data.begin(), data.end(), [](std::byte byte) { return byte == std::byte{0}; });
}

// Where `data`, read at `offset`, differs first; data.size() if nowhere.
inline std::size_t pattern_mismatch(std::span<const std::byte> data, std::uint64_t offset,
                                    std::uint64_t version = 0) {
  for (std::size_t i = 0; i < data.size(); ++i) {
    if (data[i] != pattern_byte(offset + i, version)) return i;
  }
  return data.size();
}

}  // namespace ooc::test
