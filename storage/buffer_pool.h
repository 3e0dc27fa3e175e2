// Aligned memory for chunks on their way, out of one reservation that is never exceeded.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>

namespace ooc {

class BufferPool;

// A piece of a pool's memory; goes back with its owner. One thread at a time.
class PoolBuffer {
 public:
  PoolBuffer() = default;
  PoolBuffer(PoolBuffer&& other) noexcept;
  PoolBuffer& operator=(PoolBuffer&& other) noexcept;
  ~PoolBuffer();

  std::byte* data() const { return memory_.data(); }
  std::size_t size() const { return memory_.size(); }  // asked for, rounded up to kIoAlignment
  std::span<std::byte> memory() const { return memory_; }

 private:
  friend class BufferPool;
  PoolBuffer(BufferPool* pool, std::span<std::byte> memory) : pool_(pool), memory_(memory) {}
  void give_back();

  BufferPool* pool_ = nullptr;
  std::span<std::byte> memory_;
};

// Buffers begin at a multiple of kHugePage if they are at least that long, else of kIoAlignment.
// The memory is backed by huge pages where the kernel has them, and stays the pool's once touched.
// Many threads. The pool must outlive its buffers.
class BufferPool {
 public:
  static constexpr std::size_t kHugePage = std::size_t{2} << 20;

  // BudgetError if there is no address space for `cap_bytes`, rounded down to kHugePage.
  explicit BufferPool(std::size_t cap_bytes);
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  // Waits until that much is free in one piece and all who asked before have theirs: never from a
  // completion of a BlockIo. BudgetError if it is more than the pool ever has.
  PoolBuffer take(std::size_t bytes);
  // Nothing where take() would wait.
  std::optional<PoolBuffer> try_take(std::size_t bytes);

  std::size_t cap_bytes() const { return memory_.size(); }
  std::size_t used_bytes() const;
  std::size_t peak_bytes() const;  // the most that was ever used
  // All of it, for BlockIoOptions::buffers.
  std::span<std::byte> memory() const { return memory_; }

 private:
  friend class PoolBuffer;
  std::size_t rounded(std::size_t bytes) const;
  std::optional<PoolBuffer> find(std::size_t bytes);  // mutex_ held
  void give_back(std::span<std::byte> memory);

  std::span<std::byte> memory_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::size_t, std::size_t> free_;  // offset -> bytes; no two touch
  std::size_t used_bytes_ = 0;
  std::size_t peak_bytes_ = 0;
  std::uint64_t next_ticket_ = 0;  // of those that wait, in order
  std::uint64_t now_serving_ = 0;
};

}  // namespace ooc
