#include "kernels/device/host_buffer.h"

#include <sys/mman.h>
#include <tbb/parallel_for.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "storage/base/errors.h"

namespace ooc {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kHugePageBytes = 2u << 20;

// Of the pages that lie wholly in it.
void advise(std::span<std::byte> part, int advice) {
  static const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto data = reinterpret_cast<std::uintptr_t>(part.data());
  const std::uintptr_t begin = (data + page - 1) / page * page;
  const std::uintptr_t end = (data + part.size()) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, advice);
}

template <class Buffer>
class Pages final : public Buffer {
 public:
  Pages(std::size_t bytes, std::string_view owner) : pages_(bytes, owner) {}
  std::byte* data() const override { return pages_.data(); }
  std::size_t bytes() const override { return pages_.bytes(); }

 private:
  HostBuffer pages_;
};

}  // namespace

HostBuffer::HostBuffer(std::size_t bytes, std::string_view owner) : bytes_(bytes) {
  if (bytes == 0) return;
  const std::size_t alignment = bytes >= kHugePageBytes ? kHugePageBytes : kPageBytes;
  mapped_bytes_ = (bytes + alignment - 1) / alignment * alignment;
  const std::size_t slack = alignment - kPageBytes;
  void* mapping = mmap(nullptr, mapped_bytes_ + slack, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) {
    throw BudgetError("no memory for a buffer of " + std::to_string(bytes) + " bytes", owner,
                      "lower the memory budget or free memory");
  }
  auto* begin = static_cast<std::byte*>(mapping);
  const std::size_t head =
      (alignment - reinterpret_cast<std::uintptr_t>(begin) % alignment) % alignment;
  data_ = begin + head;
  if (head > 0) munmap(begin, head);
  if (slack > head) munmap(data_ + mapped_bytes_, slack - head);
  if (alignment == kHugePageBytes) madvise(data_, mapped_bytes_, MADV_HUGEPAGE);
}

HostBuffer::~HostBuffer() {
  if (data_ != nullptr) munmap(data_, mapped_bytes_);
}

void take_pages(std::span<std::byte> buffer) {
  const std::size_t parts = (buffer.size() + kHugePageBytes - 1) / kHugePageBytes;
  tbb::parallel_for(std::size_t{0}, parts, [buffer](std::size_t part) {
    const std::size_t end = std::min((part + 1) * kHugePageBytes, buffer.size());
    for (std::size_t at = part * kHugePageBytes; at < end; at += kPageBytes) {
      buffer[at] = std::byte{0};
    }
  });
}

void drop_pages(std::span<std::byte> pages) { advise(pages, MADV_DONTNEED); }

void leave_empty(std::span<std::byte> part) { advise(part, MADV_NOHUGEPAGE); }

std::unique_ptr<DeviceBuffer> make_host_device_buffer(std::size_t bytes, std::string_view owner) {
  return std::make_unique<Pages<DeviceBuffer>>(bytes, owner);
}

std::unique_ptr<PinnedBuffer> make_host_pinned_buffer(std::size_t bytes, std::string_view owner) {
  return std::make_unique<Pages<PinnedBuffer>>(bytes, owner);
}

}  // namespace ooc
