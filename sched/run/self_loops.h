// Which vertices have a self loop in the data, a bit each: propagations that add loops add one to
// the others.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/device/backend.h"
#include "storage/stores/tensor_store.h"

namespace ooc {

// One thread.
class SelfLoops {
 public:
  // Of a dataset's degrees; null: nobody asks. All of it outlives it.
  SelfLoops(std::vector<Backend*> devices, const TensorStore* degrees)
      : devices_(std::move(devices)), degrees_(degrees), bits_(devices_.size()) {}
  // Reads them unless they are there. False: `stop` was set. IoError and DataError pass through
  // from storage.
  bool read(const std::atomic<bool>* stop);
  // Where a device finds them, in words of 64 vertices, the lowest bit first; null: not read.
  const std::uint64_t* bits(std::size_t device) const { return bits_[device]; }

  static constexpr std::int64_t bytes_of(std::int64_t vertices) {
    return ceil_div(vertices, std::int64_t{64}) * std::int64_t{sizeof(std::uint64_t)};
  }

 private:
  const std::uint64_t* copy_to(Backend& device);

  std::vector<Backend*> devices_;
  const TensorStore* degrees_;
  std::vector<std::uint64_t> words_;                    // until all devices have them
  std::vector<std::unique_ptr<DeviceBuffer>> buffers_;  // of devices with memory of their own
  std::vector<const std::uint64_t*> bits_;              // by device
};

}  // namespace ooc
