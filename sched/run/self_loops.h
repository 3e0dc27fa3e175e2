// Which vertices have a self loop in the data, a bit each: propagations that add loops add one to
// the others.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/device/backend.h"
#include "storage/stores/tensor_store.h"

namespace ooc {

// One thread.
class SelfLoops {
 public:
  // Of a dataset's degrees; null: nobody asks. Both outlive it.
  SelfLoops(Backend& backend, const TensorStore* degrees) : backend_(backend), degrees_(degrees) {}
  // Reads them unless they are there. False: `stop` was set. IoError and DataError pass through
  // from storage.
  bool read(const std::atomic<bool>* stop);
  // Where the device finds them, in words of 64 vertices, the lowest bit first; null: not read.
  const std::uint64_t* bits() const { return bits_; }

  static constexpr std::int64_t bytes_of(std::int64_t vertices) {
    return ceil_div(vertices, std::int64_t{64}) * std::int64_t{sizeof(std::uint64_t)};
  }

 private:
  Backend& backend_;
  const TensorStore* degrees_;
  std::vector<std::uint64_t> words_;      // where the device is the host
  std::unique_ptr<DeviceBuffer> buffer_;  // else
  const std::uint64_t* bits_ = nullptr;
};

}  // namespace ooc
