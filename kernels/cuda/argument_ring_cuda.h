// What kernels get beside their arguments, such as where operands lie: arrays that are written on
// the host and read on the device.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace ooc::cuda {

// Of one call of kernels, as they are put together; an array is known by its offset.
class Arguments {
 public:
  template <class T>
  std::size_t add(std::span<const T> values) {
    const std::size_t offset = (bytes_.size() + kAlignment - 1) / kAlignment * kAlignment;
    bytes_.resize(offset + values.size_bytes());
    if (!values.empty()) std::memcpy(bytes_.data() + offset, values.data(), values.size_bytes());
    return offset;
  }
  template <class T>
  std::size_t add(const std::vector<T>& values) {
    return add(std::span<const T>(values));
  }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  static constexpr std::size_t kAlignment = 16;
  std::vector<std::byte> bytes_;
};

// Two memories of one size, pinned and of the device, that are filled over and over. Many threads.
class ArgumentRing {
 public:
  // Memory and stream of the GPU of the number `index`; all of it outlives the ring.
  ArgumentRing(int index, std::span<std::byte> pinned, std::byte* device, cudaStream_t stream);
  ~ArgumentRing();
  ArgumentRing(const ArgumentRing&) = delete;
  ArgumentRing& operator=(const ArgumentRing&) = delete;

  // Arguments that are there for what is launched on the stream until this goes.
  class Sent {
   public:
    template <class T>
    const T* at(std::size_t offset) const {
      return reinterpret_cast<const T*>(first_ + offset);
    }

   private:
    friend class ArgumentRing;
    Sent(std::unique_lock<std::mutex> lock, const std::byte* first)
        : lock_(std::move(lock)), first_(first) {}
    std::unique_lock<std::mutex> lock_;
    const std::byte* first_;
  };
  cudaStream_t stream() const { return stream_; }
  // most_bytes() at most. The thread that calls works on the device from now on.
  Sent send(const Arguments& arguments);
  std::size_t most_bytes() const { return half_bytes_; }

 private:
  struct Half {
    cudaEvent_t passed = nullptr;  // what was sent from it has arrived
    bool used = false;
  };

  const int index_;
  std::byte* const pinned_;
  std::byte* const device_;
  const std::size_t half_bytes_;
  const cudaStream_t stream_;
  std::mutex mutex_;
  std::array<Half, 2> halves_;
  std::size_t half_ = 0, offset_ = 0;  // where the next ones go
};

}  // namespace ooc::cuda
