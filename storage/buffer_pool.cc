#include "storage/buffer_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "storage/block_file.h"
#include "storage/byte_size.h"
#include "storage/errors.h"

namespace ooc {
namespace {

std::size_t round_to(std::size_t value, std::size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

std::span<std::byte> reserve(std::size_t bytes) {
  // One huge page more than wanted, so that an aligned piece lies in it; the ends go back.
  const std::size_t mapped_bytes = bytes + BufferPool::kHugePage;
  void* const mapped = ::mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) {
    throw BudgetError("no address space for buffers of " + format_byte_size(bytes), "",
                      "lower the memory budget or raise the limit (ulimit -v)");
  }
  auto* const begin = static_cast<std::byte*>(mapped);
  const std::size_t skipped =
      round_to(reinterpret_cast<std::uintptr_t>(begin), BufferPool::kHugePage) -
      reinterpret_cast<std::uintptr_t>(begin);
  if (skipped > 0) ::munmap(begin, skipped);
  if (skipped < BufferPool::kHugePage) {
    ::munmap(begin + skipped + bytes, BufferPool::kHugePage - skipped);
  }
  ::madvise(begin + skipped, bytes, MADV_HUGEPAGE);  // a wish: without effect where there are none
  return {begin + skipped, bytes};
}

}  // namespace

PoolBuffer::PoolBuffer(PoolBuffer&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)), memory_(std::exchange(other.memory_, {})) {}

PoolBuffer& PoolBuffer::operator=(PoolBuffer&& other) noexcept {
  if (this != &other) {
    give_back();
    pool_ = std::exchange(other.pool_, nullptr);
    memory_ = std::exchange(other.memory_, {});
  }
  return *this;
}

PoolBuffer::~PoolBuffer() { give_back(); }

void PoolBuffer::give_back() {
  if (pool_ != nullptr) pool_->give_back(memory_);
}

BufferPool::BufferPool(std::size_t cap_bytes) {
  const std::size_t bytes = cap_bytes / kHugePage * kHugePage;
  if (bytes == 0) {
    throw BudgetError("no room for buffers in " + format_byte_size(cap_bytes), "",
                      "allow at least " + format_byte_size(kHugePage));
  }
  memory_ = reserve(bytes);
  free_.emplace(0, bytes);
}

BufferPool::~BufferPool() {
  OOC_CHECK(used_bytes_ == 0);
  ::munmap(memory_.data(), memory_.size());
}

std::size_t BufferPool::rounded(std::size_t bytes) const {
  OOC_CHECK(bytes > 0);
  if (bytes > memory_.size()) {
    throw BudgetError("a buffer of " + format_byte_size(bytes) + " from a pool of " +
                          format_byte_size(memory_.size()),
                      "", "raise the memory budget");
  }
  return round_to(bytes, kIoAlignment);
}

std::optional<PoolBuffer> BufferPool::find(std::size_t bytes) {
  // The first piece that fits, except that what is small goes into the smallest, so that the large
  // ones stay whole.
  const std::size_t alignment = bytes >= kHugePage ? kHugePage : kIoAlignment;
  auto best = free_.end();
  for (auto piece = free_.begin(); piece != free_.end(); ++piece) {
    const auto [offset, size] = *piece;
    if (round_to(offset, alignment) + bytes > offset + size) continue;
    if (best == free_.end() || size < best->second) best = piece;
    if (alignment == kHugePage) break;
  }
  if (best == free_.end()) return std::nullopt;
  const auto [offset, size] = *best;
  const std::size_t begin = round_to(offset, alignment);
  free_.erase(best);
  if (begin > offset) free_.emplace(offset, begin - offset);
  if (begin + bytes < offset + size) free_.emplace(begin + bytes, offset + size - begin - bytes);
  used_bytes_ += bytes;
  peak_bytes_ = std::max(peak_bytes_, used_bytes_);
  return PoolBuffer(this, memory_.subspan(begin, bytes));
}

PoolBuffer BufferPool::take(std::size_t bytes) {
  const std::size_t size = rounded(bytes);
  std::unique_lock lock(mutex_);
  const std::uint64_t ticket = next_ticket_++;
  std::optional<PoolBuffer> buffer;
  changed_.wait(lock, [&] {
    if (ticket == now_serving_) buffer = find(size);
    return buffer.has_value();
  });
  ++now_serving_;
  changed_.notify_all();
  return *std::move(buffer);
}

std::optional<PoolBuffer> BufferPool::try_take(std::size_t bytes) {
  const std::size_t size = rounded(bytes);
  const std::lock_guard lock(mutex_);
  if (next_ticket_ != now_serving_) return std::nullopt;
  return find(size);
}

void BufferPool::give_back(std::span<std::byte> memory) {
  {
    const std::lock_guard lock(mutex_);
    auto begin = static_cast<std::size_t>(memory.data() - memory_.data());
    std::size_t end = begin + memory.size();
    auto next = free_.lower_bound(begin);
    if (next != free_.end() && next->first == end) {
      end += next->second;
      next = free_.erase(next);
    }
    if (next != free_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == begin) {
        begin = before->first;
        free_.erase(before);
      }
    }
    free_.emplace(begin, end - begin);
    used_bytes_ -= memory.size();
  }
  changed_.notify_all();
}

std::size_t BufferPool::used_bytes() const {
  const std::lock_guard lock(mutex_);
  return used_bytes_;
}

std::size_t BufferPool::peak_bytes() const {
  const std::lock_guard lock(mutex_);
  return peak_bytes_;
}

}  // namespace ooc
