#include "tests/support/strict_device.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/device/async_queue.h"
#include "kernels/device/cpu_backend.h"
#include "kernels/device/host_buffer.h"
#include "storage/base/errors.h"

namespace ooc::test {
namespace {

constexpr std::size_t kAddresses = std::size_t{1} << 36;
constexpr std::size_t kPage = 4096;

// Two ranges of addresses: the host's, of which nothing is mapped, and the device's, `delta` after
// it, of which what is allocated is. Addresses aren't given twice.
class Memory {
 public:
  explicit Memory(std::int64_t capacity) : capacity_(capacity) {
    void* mapping = mmap(nullptr, 2 * kAddresses, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    OOC_CHECK(mapping != MAP_FAILED);
    host_ = static_cast<std::byte*>(mapping);
    const std::lock_guard lock(all_mutex());
    all().insert(this);
  }
  ~Memory() {
    {
      const std::lock_guard lock(all_mutex());
      all().erase(this);
    }
    munmap(host_, 2 * kAddresses);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::byte* take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto wanted = static_cast<std::int64_t>(bytes);
    const bool fits = capacity_ == 0 || wanted <= capacity_ - used_;
    if (!fits || bytes > kAddresses - next_) {
      throw BudgetError("no room for a buffer of " + std::to_string(bytes) + " bytes", "strict",
                        "raise --device-memory");
    }
    std::byte* data = host_ + next_;
    const std::size_t mapped = (bytes + kPage - 1) / kPage * kPage;
    // A page of nothing between buffers.
    next_ += mapped + kPage;
    if (mapped > 0) OOC_CHECK(mprotect(data + kAddresses, mapped, PROT_READ | PROT_WRITE) == 0);
    used_ += wanted;
    peak_ = std::max(peak_, used_);
    return data;
  }
  void give_back(std::byte* data, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    used_ -= static_cast<std::int64_t>(bytes);
    const std::size_t mapped = (bytes + kPage - 1) / kPage * kPage;
    if (mapped == 0) return;
    madvise(data + kAddresses, mapped, MADV_DONTNEED);
    mprotect(data + kAddresses, mapped, PROT_NONE);
  }
  std::int64_t peak() const {
    const std::lock_guard lock(mutex_);
    return peak_;
  }

  // Where a kernel finds what lies at an address; the host's own stays.
  template <class T>
  T* translate(T* address) const {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    const auto begin = reinterpret_cast<std::uintptr_t>(host_);
    if (at < begin || at >= begin + kAddresses) return address;
    return reinterpret_cast<T*>(at + kAddresses);
  }
  // The same of what is copied, which may be another device's.
  static const std::byte* of_any(const void* address) {
    const auto* there = static_cast<const std::byte*>(address);
    const std::lock_guard lock(all_mutex());
    for (const Memory* memory : all()) {
      const std::byte* const translated = memory->translate(there);
      if (translated != there) return translated;
    }
    return there;
  }
  // The same of what a kernel is given, which has no host memory.
  template <class T>
  T* of_kernel(T* address) const {
    T* const there = translate(address);
    OOC_CHECK(address == nullptr || there != address);
    return there;
  }
  SlicedRows of_kernel(const SlicedRows& rows) const {
    return {of_kernel(rows.first), rows.slice_stride, of_kernel(rows.last)};
  }

 private:
  static std::set<const Memory*>& all() {
    static std::set<const Memory*> memories;
    return memories;
  }
  static std::mutex& all_mutex() {
    static std::mutex mutex;
    return mutex;
  }

  const std::int64_t capacity_;
  mutable std::mutex mutex_;
  std::byte* host_ = nullptr;
  std::size_t next_ = 0;
  std::int64_t used_ = 0, peak_ = 0;
};

class Buffer final : public DeviceBuffer {
 public:
  Buffer(Memory& memory, std::size_t bytes)
      : memory_(memory), bytes_(bytes), data_(memory.take(bytes)) {}
  ~Buffer() override { memory_.give_back(data_, bytes_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  std::byte* data() const override { return data_; }
  std::size_t bytes() const override { return bytes_; }

 private:
  Memory& memory_;
  std::size_t bytes_;
  std::byte* data_;
};

// Of one queue: most work goes at once, some so late that whoever doesn't wait for it overtakes it.
class Delays {
 public:
  Delays(std::uint64_t seed, std::uint32_t queue)
      : random_(seed * 31 + queue), always_(seed == kAlwaysLate) {}
  void operator()() {
    const std::uint64_t drawn = always_ ? 31 : random_() % 32;
    if (drawn < 24) return;
    if (drawn < 30) return std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(drawn == 31 ? 300 : 20));
  }

 private:
  std::mt19937_64 random_;
  bool always_;
};

class StrictQueue final : public AsyncQueue {
 public:
  StrictQueue(const Memory& memory, std::uint32_t index, std::uint64_t seed,
              std::int64_t failing_launch, std::function<void(Ticket)> others)
      : AsyncQueue(index, std::move(others), Delays(seed, index)),
        memory_(memory),
        failing_launch_(failing_launch) {}

  void launch(std::function<void()> kernel) {
    if (++launches_ == failing_launch_) throw std::runtime_error("a kernel can't be launched");
    push(std::move(kernel));
  }

  void copy(void* to, const void* from, std::size_t bytes) override {
    AsyncQueue::copy(memory_.translate(to), Memory::of_any(from), bytes);
  }
  void zero(void* data, std::size_t bytes) override {
    AsyncQueue::zero(memory_.translate(data), bytes);
  }

 private:
  const Memory& memory_;
  const std::int64_t failing_launch_;
  std::atomic<std::int64_t> launches_{0};
};

class StrictRowWork final : public RowWork {
 public:
  StrictRowWork(std::unique_ptr<RowWork> work, const Memory& memory, StrictQueue& queue)
      : work_(std::move(work)), memory_(memory), queue_(queue) {}

  void run(const RowCall& call) const override {
    std::vector<Group> groups;
    for (const RowGroup& group : call.groups) {
      Group& there = groups.emplace_back();
      there.group = group;
      there.group.scratch = memory_.of_kernel(group.scratch);
      for (const SlicedRows& rows : group.operands) {
        there.operands.push_back(memory_.of_kernel(rows));
      }
      for (void* partial : group.partials) there.partials.push_back(memory_.of_kernel(partial));
    }
    queue_.launch(
        [this, stored = call.stored, state = call.state, groups = std::move(groups)]() mutable {
          std::vector<RowGroup> there;
          for (Group& group : groups) {
            group.group.operands = group.operands;
            group.group.partials = group.partials;
            there.push_back(group.group);
          }
          work_->run({there, stored, state});
        });
  }

 private:
  struct Group {
    RowGroup group;
    std::vector<SlicedRows> operands;
    std::vector<void*> partials;
  };

  std::unique_ptr<RowWork> work_;
  const Memory& memory_;
  StrictQueue& queue_;
};

// Reads the directories of edge chunks itself.
class StrictEdgeWork final : public EdgeWork {
 public:
  StrictEdgeWork(std::unique_ptr<EdgeWork> work, const Memory& memory, StrictQueue& queue)
      : work_(std::move(work)), memory_(memory), queue_(queue) {}

  void run(const EdgeWindow& window, const EdgeCall& call) const override {
    EdgeWindow there = window;
    for (EdgeWindow::Span& span : there.spans) {
      OOC_CHECK(span.tiles.empty());
      if (!span.chunk.empty()) {
        span.chunk = {memory_.of_kernel(span.chunk.data()), span.chunk.size()};
      }
    }
    for (auto* operands : {&there.streamed, &there.resident, &there.accumulators}) {
      for (SlicedRows& rows : *operands) rows = memory_.of_kernel(rows);
    }
    for (auto* matrices : {&there.matrices, &there.partials}) {
      for (void*& matrix : *matrices) matrix = memory_.of_kernel(matrix);
    }
    there.self_loops = memory_.of_kernel(there.self_loops);
    EdgeCall its = call;
    its.scratch = {memory_.of_kernel(call.scratch.data()), call.scratch.size()};
    queue_.launch([this, there = std::move(there), its]() mutable {
      const std::int64_t panel = there.first_block / there.layout->panel_blocks;
      std::vector<std::vector<PanelTile>> tiles;
      for (const EdgeWindow::Span& span : there.spans) {
        tiles.push_back(panel_tiles(*there.layout, panel, span.chunk));
      }
      for (std::size_t i = 0; i < tiles.size(); ++i) there.spans[i].tiles = tiles[i];
      work_->run(there, its);
    });
  }

 private:
  std::unique_ptr<EdgeWork> work_;
  const Memory& memory_;
  StrictQueue& queue_;
};

class StrictDevice final : public Backend {
 public:
  StrictDevice(std::uint64_t seed, std::int64_t memory_bytes, std::int64_t failing_launch)
      : memory_(memory_bytes), cpu_(make_cpu_backend()) {
    for (std::uint32_t i = 0; i < kQueueKinds; ++i) {
      queues_.push_back(std::make_unique<StrictQueue>(
          memory_, i, seed, failing_launch,
          [this](Ticket ticket) { queues_[ticket.queue]->wait(ticket); }));
    }
  }

  const std::string& name() const override { return name_; }
  const ComputeShape& shape() const override { return shape_; }
  bool host_accessible() const override { return false; }
  std::unique_ptr<DeviceBuffer> allocate(std::size_t bytes) override {
    return std::make_unique<Buffer>(memory_, bytes);
  }
  std::unique_ptr<PinnedBuffer> allocate_pinned(std::size_t bytes,
                                                std::string_view owner) override {
    return make_host_pinned_buffer(bytes, owner);
  }
  std::int64_t memory_peak() const override { return memory_.peak(); }
  Queue& queue(QueueKind kind) override { return *queues_[static_cast<std::size_t>(kind)]; }

  void optimize(const OptimizerStep& step) override {
    OptimizerStep there = step;
    there.parameter = memory_.of_kernel(step.parameter);
    there.gradient = memory_.of_kernel(step.gradient);
    there.m = memory_.of_kernel(step.m);
    there.v = memory_.of_kernel(step.v);
    compute().push([this, there] { cpu_->optimize(there); });
  }
  void accumulate(DType dtype, std::int64_t count, void* to, const void* from) override {
    compute().push([this, dtype, count, to = memory_.of_kernel(to),
                    from = memory_.of_kernel(from)] { cpu_->accumulate(dtype, count, to, from); });
  }

 private:
  std::unique_ptr<RowWork> make_row_work(const RowProgram& program) const override {
    return std::make_unique<StrictRowWork>(cpu_->row_work(program), memory_, compute());
  }
  std::unique_ptr<EdgeWork> make_edge_work(const EdgeProgram& program) const override {
    return std::make_unique<StrictEdgeWork>(cpu_->edge_work(program), memory_, compute());
  }

  StrictQueue& compute() const { return *queues_[0]; }

  std::string name_ = "strict";
  ComputeShape shape_{.runs_inline = false, .host_tiles = false};
  Memory memory_;
  std::unique_ptr<Backend> cpu_;
  std::vector<std::unique_ptr<StrictQueue>> queues_;
};

}  // namespace

std::unique_ptr<Backend> make_strict_device(std::uint64_t seed, std::int64_t memory_bytes,
                                            std::int64_t failing_launch) {
  return std::make_unique<StrictDevice>(seed, memory_bytes, failing_launch);
}

}  // namespace ooc::test
