#include "kernels/device/device_cuda.h"

#include <algorithm>
#include <set>

#include "kernels/cuda/launch_cuda.h"
#include "kernels/device/host_buffer.h"
#include "storage/base/byte_size.h"
#include "storage/base/errors.h"

namespace ooc::cuda {
namespace {

constexpr std::size_t kAlignment = 4096;

// Pages of the host that the GPU reads and writes in place.
class PinnedPages final : public PinnedBuffer {
 public:
  PinnedPages(std::size_t bytes, std::string_view owner) : pages_(bytes, owner) {
    if (bytes == 0) return;
    take_pages({pages_.data(), bytes});
    const cudaError_t error = cudaHostRegister(pages_.data(), bytes, cudaHostRegisterPortable);
    if (error == cudaErrorMemoryAllocation) {
      throw BudgetError("no room to pin " + format_byte_size(static_cast<std::int64_t>(bytes)) +
                            " of the host's memory",
                        owner, "give less --host-memory, or raise what may be locked");
    }
    check(error, "pinning memory of the host");
  }
  ~PinnedPages() override {
    if (pages_.bytes() > 0) cudaHostUnregister(pages_.data());
  }
  PinnedPages(const PinnedPages&) = delete;
  PinnedPages& operator=(const PinnedPages&) = delete;
  std::byte* data() const override { return pages_.data(); }
  std::size_t bytes() const override { return pages_.bytes(); }

 private:
  HostBuffer pages_;
};

// Throws where there is no GPU of the number.
int checked_index(int index) {
  int count = 0;
  check(cudaGetDeviceCount(&count), "looking for GPUs");
  if (index >= 0 && index < count) return index;
  throw DeviceError(
      "there is no GPU of the number " + std::to_string(index) + " among " + std::to_string(count),
      "--devices", "count them from 0, or give --devices cpu");
}

cudaMemPool_t pool_of(int index) {
  cudaMemPool_t pool = nullptr;
  check(cudaDeviceGetDefaultMemPool(&pool, index), "asking for the memory's pool");
  return pool;
}

// Memory of `owner` to the GPU `reader`, where the two have a way that doesn't lead through the
// host. Where it can't be opened copies take the longer one.
void open_memory(int owner, int reader) {
  int can = 0;
  if (cudaDeviceCanAccessPeer(&can, reader, owner) != cudaSuccess || can == 0) return;
  cudaMemAccessDesc access{};
  access.location.type = cudaMemLocationTypeDevice;
  access.location.id = reader;
  access.flags = cudaMemAccessFlagsProtReadWrite;
  cudaMemPoolSetAccess(pool_of(owner), &access, 1);
}

// Of all GPUs that this process has used and that are there, to each other.
void open_to_others(int index) {
  static std::mutex mutex;
  static std::set<int> used;
  int count = 0;
  check(cudaGetDeviceCount(&count), "looking for GPUs");
  const std::lock_guard lock(mutex);
  for (const int other : used) {
    if (other == index || other >= count) continue;
    open_memory(index, other);
    open_memory(other, index);
  }
  used.insert(index);
}

}  // namespace

class Device::Buffer final : public DeviceBuffer {
 public:
  Buffer(Device& device, std::size_t bytes)
      : device_(device), bytes_(bytes), taken_(bytes == 0 ? nullptr : device.take(bytes)) {}
  ~Buffer() override {
    if (taken_ != nullptr) device_.give_back(taken_, bytes_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  std::byte* data() const override {
    const auto address = reinterpret_cast<std::uintptr_t>(taken_);
    return static_cast<std::byte*>(taken_) + (kAlignment - address % kAlignment) % kAlignment;
  }
  std::size_t bytes() const override { return bytes_; }

 private:
  Device& device_;
  std::size_t bytes_;
  void* taken_;
};

Device::Device(int index, std::int64_t memory_bytes)
    : index_(checked_index(index)),
      name_("cuda:" + std::to_string(index)),
      memory_bytes_(memory_bytes) {
  const auto events = std::make_shared<EventPool>();
  for (std::uint32_t i = 0; i < kQueueKinds; ++i) {
    queues_.push_back(std::make_unique<StreamQueue>(index_, i, events, [this](Ticket ticket) {
      return queues_[ticket.queue]->event_of(ticket);
    }));
  }
  open_to_others(index_);
}

std::unique_ptr<DeviceBuffer> Device::allocate(std::size_t bytes) {
  return std::make_unique<Buffer>(*this, bytes);
}

std::unique_ptr<PinnedBuffer> Device::allocate_pinned(std::size_t bytes, std::string_view owner) {
  use_device(index_);
  return std::make_unique<PinnedPages>(bytes, owner);
}

std::int64_t Device::memory_peak() const {
  const std::lock_guard lock(mutex_);
  return peak_;
}

// Zeroed, and there for all queues. The alignment isn't counted: it is that of a page of the GPU's.
void* Device::take(std::size_t bytes) {
  const auto wanted = static_cast<std::int64_t>(bytes);
  const auto refuse = [&](std::int64_t free, std::int64_t all) {
    throw BudgetError("no room for a buffer of " + format_byte_size(wanted) +
                          " in the device's memory: " + format_byte_size(free) + " of " +
                          format_byte_size(all) + " are free",
                      name_, "raise --device-memory");
  };
  {
    const std::lock_guard lock(mutex_);
    if (memory_bytes_ > 0 && wanted > memory_bytes_ - used_) {
      refuse(memory_bytes_ - used_, memory_bytes_);
    }
    used_ += wanted;
  }
  void* data = nullptr;
  try {
    use_device(index_);
    const cudaStream_t stream = queue(QueueKind::kCompute).stream();
    cudaError_t error = cudaMallocAsync(&data, bytes + kAlignment, stream);
    if (error == cudaErrorMemoryAllocation) {  // what was given back may not be free yet
      check(cudaStreamSynchronize(stream), "waiting for the device");
      check(cudaMemPoolTrimTo(pool_of(index_), 0), "freeing memory that was given back");
      error = cudaMallocAsync(&data, bytes + kAlignment, stream);
    }
    if (error == cudaErrorMemoryAllocation) {
      std::size_t free = 0, all = 0;
      check(cudaMemGetInfo(&free, &all), "asking for free memory");
      refuse(static_cast<std::int64_t>(free), static_cast<std::int64_t>(all));
    }
    check(error, "taking memory of the device");
    check(cudaMemsetAsync(data, 0, bytes + kAlignment, stream), "zeroing");
    check(cudaStreamSynchronize(stream), "waiting for the device");
  } catch (...) {
    give_back(data, bytes);
    throw;
  }
  const std::lock_guard lock(mutex_);
  peak_ = std::max(peak_, used_);
  return data;
}

void Device::give_back(void* data, std::size_t bytes) {
  cudaSetDevice(index_);
  if (data != nullptr) cudaFreeAsync(data, queue(QueueKind::kCompute).stream());
  const std::lock_guard lock(mutex_);
  used_ -= static_cast<std::int64_t>(bytes);
}

}  // namespace ooc::cuda
