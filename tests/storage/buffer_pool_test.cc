#include "storage/buffer_pool.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "storage/block_file.h"
#include "storage/errors.h"
#include "tests/support/input_files.h"

namespace ooc {
namespace {

constexpr std::size_t kMiB = 1 << 20;

std::size_t misaligned(const PoolBuffer& buffer, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(buffer.data()) % alignment;
}

}  // namespace

TEST_CASE("buffer_pool: large buffers begin at huge pages, small ones at whole units") {
  BufferPool pool(16 * kMiB);
  CHECK(pool.cap_bytes() == 16 * kMiB);
  const PoolBuffer small = pool.take(5000);
  const PoolBuffer large = pool.take(2 * kMiB + 1);
  const PoolBuffer other = pool.take(3 * kMiB);
  CHECK(small.size() == 8192);
  CHECK(large.size() == 2 * kMiB + kIoAlignment);
  CHECK(misaligned(small, kIoAlignment) == 0);
  CHECK(misaligned(large, BufferPool::kHugePage) == 0);
  CHECK(misaligned(other, BufferPool::kHugePage) == 0);
  CHECK(pool.used_bytes() == small.size() + large.size() + other.size());
  for (const PoolBuffer* buffer : {&small, &large, &other}) {
    CHECK(buffer->data() >= pool.memory().data());
    CHECK(buffer->data() + buffer->size() <= pool.memory().data() + pool.memory().size());
    std::memset(buffer->data(), 1, buffer->size());
  }
}

TEST_CASE("buffer_pool: nothing beyond the cap, and all of it again when buffers are back") {
  BufferPool pool(8 * kMiB);
  std::vector<PoolBuffer> buffers;
  while (auto buffer = pool.try_take(2 * kMiB)) buffers.push_back(*std::move(buffer));
  CHECK(buffers.size() == 4);
  CHECK_FALSE(pool.try_take(1).has_value());
  std::swap(buffers[0], buffers[2]);
  buffers.erase(buffers.begin());  // pieces go back in another order and grow together again
  CHECK_FALSE(pool.try_take(4 * kMiB).has_value());
  buffers.clear();
  CHECK(pool.used_bytes() == 0);
  CHECK(pool.peak_bytes() == 8 * kMiB);
  CHECK(pool.try_take(8 * kMiB).has_value());
}

TEST_CASE("buffer_pool: more than the cap, and a cap of nothing, are errors of the budget") {
  BufferPool pool(5 * kMiB);
  CHECK(pool.cap_bytes() == 4 * kMiB);
  CHECK(test::error_of<BudgetError>([&] { pool.take(4 * kMiB + 1); }) ==
        "a buffer of 4 MiB from a pool of 4 MiB; raise the memory budget");
  CHECK(test::error_of<BudgetError>([] { BufferPool(1000); }) ==
        "no room for buffers in 1000 B; allow at least 2 MiB");
}

TEST_CASE("buffer_pool: a moved buffer goes back once") {
  BufferPool pool(4 * kMiB);
  PoolBuffer a = pool.take(kMiB);
  PoolBuffer b = std::move(a);
  CHECK(pool.used_bytes() == kMiB);
  b = pool.take(2 * kMiB);
  CHECK(pool.used_bytes() == 2 * kMiB);
  b = PoolBuffer();
  CHECK(pool.used_bytes() == 0);
}

TEST_CASE("buffer_pool: who waits for much is not overtaken by who wants little") {
  BufferPool pool(4 * kMiB);
  std::vector<PoolBuffer> held;
  held.push_back(pool.take(2 * kMiB));
  std::atomic<bool> served{false};
  std::thread waiter([&] {
    const PoolBuffer all = pool.take(4 * kMiB);
    served = true;
  });
  while (pool.try_take(4096).has_value()) std::this_thread::yield();  // until it waits
  CHECK_FALSE(served);
  held.clear();
  waiter.join();
  CHECK(served);
  CHECK(pool.try_take(4096).has_value());
}

TEST_CASE("buffer_pool: many threads share it without overlap and within the cap") {
  BufferPool pool(6 * kMiB);
  std::atomic<int> wrong{0};
  const auto work = [&](unsigned seed) {
    std::mt19937 random(seed);
    for (int i = 0; i < 300; ++i) {
      const std::size_t bytes = 1 + random() % (random() % 4 == 0 ? 3 * kMiB : 64 << 10);
      const PoolBuffer buffer = pool.take(bytes);
      // Its first and last words are its own as long as it is held.
      const std::uint64_t mark = seed * 1000 + static_cast<unsigned>(i);
      std::byte* const last = buffer.data() + buffer.size() - sizeof(mark);
      std::memcpy(buffer.data(), &mark, sizeof(mark));
      std::memcpy(last, &mark, sizeof(mark));
      std::this_thread::yield();
      if (std::memcmp(buffer.data(), &mark, sizeof(mark)) != 0 ||
          std::memcmp(last, &mark, sizeof(mark)) != 0) {
        ++wrong;
      }
    }
  };
  std::vector<std::thread> threads;
  for (unsigned seed = 1; seed <= 4; ++seed) threads.emplace_back(work, seed);
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(pool.used_bytes() == 0);
  CHECK(pool.peak_bytes() <= pool.cap_bytes());
}

}  // namespace ooc
