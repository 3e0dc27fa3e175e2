#include "storage/import/edges/edge_import.h"

#include <fmt/format.h>
#include <tbb/parallel_pipeline.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "storage/base/byte_size.h"
#include "storage/base/errors.h"
#include "storage/io/io_threads.h"

namespace ooc {
namespace {

constexpr std::int64_t kLeastBlockEdges = 1 << 10;
constexpr std::int64_t kGoodBlockEdges = 1 << 20;  // fewer blocks before smaller ones
constexpr std::int64_t kMostBlockEdges = 32 << 20;
constexpr std::int64_t kLeastBlocks = 3;  // one being read, two being written

// A block of edges on its way: read, sorted, written.
struct Work {
  EdgeBlock read;
  EdgeSorter::Block sorted;
};

// Blocks in use and blocks to use again. The reader waits where all are in use: then the disk is
// what limits.
class WorkPool {
 public:
  explicit WorkPool(std::size_t most) : free_(most) {}
  std::shared_ptr<Work> take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return free_ > 0; });
    --free_;
    if (idle_.empty()) return std::make_shared<Work>();
    auto work = std::move(idle_.back());
    idle_.pop_back();
    return work;
  }
  void give_back(std::shared_ptr<Work> work) {
    {
      const std::lock_guard lock(mutex_);
      idle_.push_back(std::move(work));
      ++free_;
    }
    changed_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t free_;
  std::vector<std::shared_ptr<Work>> idle_;
};

// Gives the block back however the write ends.
struct ReturnTo {
  WorkPool& pool;
  const std::shared_ptr<Work>& work;
  ~ReturnTo() { pool.give_back(work); }
};

}  // namespace

void sort_edges(EdgeSource& source, std::span<const VertexIndex> new_ids, std::size_t data_bytes,
                std::int64_t memory_bytes, EdgeSorter& sorter, const Control& control) {
  const std::int64_t threads = tbb::this_task_arena::max_concurrency();
  const auto edge_bytes =
      static_cast<std::int64_t>(sizeof(Edge) + 2 * sizeof(std::uint64_t) + 3 * data_bytes) +
      sort_memory(data_bytes);
  const auto blocks = static_cast<std::size_t>(std::clamp(
      memory_bytes / (kGoodBlockEdges * edge_bytes), kLeastBlocks, threads + kLeastBlocks));
  const std::int64_t block_edges =
      std::min(memory_bytes / edge_bytes / static_cast<std::int64_t>(blocks), kMostBlockEdges);
  if (block_edges < kLeastBlockEdges) {
    throw BudgetError("what the edges carry does not fit the memory",
                      fmt::format("{} an edge", format_byte_size(edge_bytes)),
                      fmt::format("give {} more with --memory",
                                  format_byte_size(kLeastBlocks * kLeastBlockEdges * edge_bytes)));
  }
  const auto total = static_cast<double>(source.known_edges().value_or(0));
  std::int64_t read = 0;
  WorkPool pool(blocks);
  std::mutex writes_mutex;
  std::vector<std::future<void>> writes;
  std::atomic<bool> failed{false};
  IoThreads io;
  using Token = std::shared_ptr<Work>;
  const auto next = [&](tbb::flow_control& flow) -> Token {
    Token work = pool.take();
    if (failed || !source.next(block_edges, work->read)) {
      flow.stop();
      return nullptr;
    }
    read += static_cast<std::int64_t>(work->read.edges.size());
    control.step("sorting edges", static_cast<double>(read), total);
    return work;
  };
  const auto sort = [&](const Token& work) {
    if (!new_ids.empty()) renumber_edges(work->read.edges, new_ids);
    sorter.sort(work->read.number, work->read.edges, work->read.data, work->sorted);
    auto written = io.submit([&sorter, &pool, &failed, work] {
      const ReturnTo owner{pool, work};
      try {
        sorter.write(work->sorted);
      } catch (...) {
        failed = true;  // no use in reading on
        throw;
      }
    });
    const std::lock_guard lock(writes_mutex);
    writes.push_back(std::move(written));
  };
  tbb::parallel_pipeline(blocks,
                         tbb::make_filter<void, Token>(tbb::filter_mode::serial_in_order, next) &
                             tbb::make_filter<Token, void>(tbb::filter_mode::parallel, sort));
  for (std::future<void>& write : writes) write.get();
  sorter.finish();
}

}  // namespace ooc
