// Which vertices have a self loop in the data, a bit each: propagations that add loops add one to
// the others.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "storage/stores/tensor_store.h"

namespace ooc {

// has() may be called from many threads.
class SelfLoops {
 public:
  // Reads a dataset's degrees. False: `stop` was set. IoError and DataError pass through from
  // storage.
  bool read(const TensorStore& degrees, const std::atomic<bool>* stop);
  bool is_read() const { return !words_.empty(); }

  static constexpr std::int64_t bytes_of(std::int64_t vertices) {
    return ceil_div(vertices, std::int64_t{64}) * std::int64_t{sizeof(std::uint64_t)};
  }
  bool has(std::int64_t vertex) const {
    return (words_[static_cast<std::size_t>(vertex / 64)] >> (vertex % 64) & 1) != 0;
  }

 private:
  std::vector<std::uint64_t> words_;
};

}  // namespace ooc
