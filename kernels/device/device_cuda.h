// A GPU's memory and queues.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/device/backend.h"
#include "kernels/device/queue_cuda.h"

namespace ooc::cuda {

// Threads and errors as Backend says.
class Device {
 public:
  // The GPU of the number `index`; DeviceError where there is none, or no driver. It gives out so
  // many bytes at most; 0: what the GPU has free.
  Device(int index, std::int64_t memory_bytes);

  const std::string& name() const { return name_; }
  int index() const { return index_; }
  StreamQueue& queue(QueueKind kind) { return *queues_[static_cast<std::size_t>(kind)]; }

  std::unique_ptr<DeviceBuffer> allocate(std::size_t bytes);
  std::unique_ptr<PinnedBuffer> allocate_pinned(std::size_t bytes, std::string_view owner);
  std::int64_t memory_peak() const;

 private:
  class Buffer;
  void* take(std::size_t bytes);
  void give_back(void* data, std::size_t bytes);

  const int index_;
  const std::string name_;
  const std::int64_t memory_bytes_;
  std::vector<std::unique_ptr<StreamQueue>> queues_;
  mutable std::mutex mutex_;
  std::int64_t used_ = 0, peak_ = 0;
};

}  // namespace ooc::cuda
