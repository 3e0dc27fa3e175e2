// Memory of the host for what is large: the CPU backend's device memory, and what lies below a
// device with memory of its own.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "kernels/device/backend.h"

namespace ooc {

// Anonymous pages, 4 KiB aligned, in huge ones where the buffer holds any: random reads of rows are
// up to twice as fast. The kernel hands pages out zeroed, on first touch.
class HostBuffer {
 public:
  // BudgetError where there is no memory, naming `owner`.
  HostBuffer(std::size_t bytes, std::string_view owner);
  ~HostBuffer();
  HostBuffer(HostBuffer&& from) noexcept
      : data_(std::exchange(from.data_, nullptr)),
        bytes_(from.bytes_),
        mapped_bytes_(from.mapped_bytes_) {}
  HostBuffer& operator=(HostBuffer&&) = delete;

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t mapped_bytes_ = 0;
};

// The pages as memory of a device that is the CPU, and as what its copies use.
std::unique_ptr<DeviceBuffer> make_host_device_buffer(std::size_t bytes, std::string_view owner);
std::unique_ptr<PinnedBuffer> make_host_pinned_buffer(std::size_t bytes, std::string_view owner);

// Has the kernel hand out all pages of such a buffer now, to all workers: each lies where a worker
// runs, so that with several processors no memory is one's alone, and it takes as long as memory
// does, not one thread.
void take_pages(std::span<std::byte> buffer);
// Gives the pages that lie wholly in this part of such a buffer back to the kernel; what they held
// is lost. They come back as zeros when they are touched again.
void drop_pages(std::span<std::byte> pages);
// Of a part that nobody touches: no huge page of what lies beside it reaches into it.
void leave_empty(std::span<std::byte> part);

}  // namespace ooc
