// Vectors in a GPU's memory, for tests of its kernels.
#pragma once

#include <memory>
#include <vector>

#include "kernels/device/device_cuda.h"

namespace ooc::test {

// `Device`: cuda::Device, or a Backend.
template <class Device>
class DeviceCopies {
 public:
  explicit DeviceCopies(Device& device)
      : device_(device), queue_(device.queue(QueueKind::kCompute)) {}

  // Null where there are none. Lives as long as this.
  template <class T>
  T* of(const std::vector<T>& values) {
    if (values.empty()) return nullptr;
    buffers_.push_back(device_.allocate(values.size() * sizeof(T)));
    queue_.copy(buffers_.back()->data(), values.data(), values.size() * sizeof(T));
    queue_.wait(queue_.record());
    return reinterpret_cast<T*>(buffers_.back()->data());
  }
  template <class T>
  void back(std::vector<T>& values, const T* from) {
    queue_.copy(values.data(), from, values.size() * sizeof(T));
    queue_.wait(queue_.record());
  }

 private:
  Device& device_;
  Queue& queue_;
  std::vector<std::unique_ptr<DeviceBuffer>> buffers_;
};

}  // namespace ooc::test
