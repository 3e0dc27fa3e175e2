#include "kernels/cuda/argument_ring_cuda.h"

#include "kernels/cuda/launch_cuda.h"
#include "storage/base/errors.h"

namespace ooc::cuda {

ArgumentRing::ArgumentRing(int index, std::span<std::byte> pinned, std::byte* device,
                           cudaStream_t stream)
    : index_(index),
      pinned_(pinned.data()),
      device_(device),
      half_bytes_(pinned.size() / 2),
      stream_(stream) {
  use_device(index_);
  for (Half& half : halves_) {
    check(cudaEventCreateWithFlags(&half.passed, cudaEventDisableTiming | cudaEventBlockingSync),
          "making an event");
  }
}

// The memory goes next: nothing may be on its way from it.
ArgumentRing::~ArgumentRing() {
  cudaStreamSynchronize(stream_);
  for (const Half& half : halves_) cudaEventDestroy(half.passed);
}

ArgumentRing::Sent ArgumentRing::send(const Arguments& arguments) {
  constexpr std::size_t kAlignment = 256;
  const std::span<const std::byte> bytes = arguments.bytes();
  OOC_CHECK(bytes.size() <= half_bytes_);
  use_device(index_);
  std::unique_lock lock(mutex_);
  if (offset_ + bytes.size() > half_bytes_) {
    check(cudaEventRecord(halves_[half_].passed, stream_), "recording an event");
    halves_[half_].used = true;
    half_ ^= 1;
    offset_ = 0;
    if (halves_[half_].used) {
      check(cudaEventSynchronize(halves_[half_].passed), "waiting for the device");
    }
  }
  const std::size_t at = half_ * half_bytes_ + offset_;
  offset_ = (offset_ + bytes.size() + kAlignment - 1) / kAlignment * kAlignment;
  if (!bytes.empty()) {
    std::memcpy(pinned_ + at, bytes.data(), bytes.size());
    check(cudaMemcpyAsync(device_ + at, pinned_ + at, bytes.size(), cudaMemcpyDefault, stream_),
          "copying");
  }
  return {std::move(lock), device_ + at};
}

}  // namespace ooc::cuda
