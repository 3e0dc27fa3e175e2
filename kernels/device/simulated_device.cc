#include "kernels/device/simulated_device.h"

#include <sys/mman.h>

#include <exception>
#include <map>
#include <mutex>
#include <string_view>

#include "storage/base/errors.h"

namespace ooc {

SimulatedCompute::SimulatedCompute(SimulatedClock& clock, std::int64_t at_once) : clock_(clock) {
  for (std::int64_t lane = 0; lane < at_once; ++lane) free_.insert(lane);
}

void SimulatedCompute::run(double seconds, Done done) {
  if (free_.empty()) {
    waiting_.emplace_back(seconds, std::move(done));
    return;
  }
  begin(free_.extract(free_.begin()).value(), seconds, std::move(done));
}

void SimulatedCompute::begin(std::int64_t lane, double seconds, Done done) {
  const auto end = [this, lane, began = clock_.now(), done = std::move(done)] {
    if (waiting_.empty()) {
      free_.insert(lane);
    } else {
      auto next = std::move(waiting_.front());
      waiting_.pop_front();
      begin(lane, next.first, std::move(next.second));
    }
    done(began, lane);
  };
  clock_.after(clock_.varied(SimulatedClock::seconds(seconds)), end);
}

namespace {

// Addresses that nothing lies at.
class Addresses final : public DeviceBuffer, public PinnedBuffer {
 public:
  Addresses(std::size_t bytes, std::string_view owner) : bytes_(bytes) {
    if (bytes == 0) return;
    void* const data =
        ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) {
      throw BudgetError("no addresses for " + std::to_string(bytes) + " bytes", std::string(owner),
                        "simulate with less memory");
    }
    data_ = static_cast<std::byte*>(data);
  }
  ~Addresses() override {
    if (data_ != nullptr) ::munmap(data_, bytes_);
  }
  Addresses(const Addresses&) = delete;
  Addresses& operator=(const Addresses&) = delete;

  std::byte* data() const override { return data_; }
  std::size_t bytes() const override { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  const std::size_t bytes_;
};

// By the clock's rules no two threads at once.
class SimulatedQueue final : public Queue {
 public:
  SimulatedQueue(SimulatedClock& clock, std::uint32_t index, LinkPath path)
      : clock_(clock), index_(index), path_(std::move(path)) {}

  void copy(void*, const void*, std::size_t bytes) override {
    if (bytes > 0) push(bytes);
  }
  void zero(void*, std::size_t) override {}
  Ticket record() override { return {index_, issued_}; }
  void follow(Ticket ticket) override {
    OOC_CHECK(ticket.queue == index_ || ticket.value == 0);  // nobody has asked for others
  }
  void wait(Ticket ticket) override {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    while (done_ < ticket.value && !clock_.stands_still()) clock_.wait(lock, changed_);
  }
  bool after(Ticket ticket, const std::function<void(std::exception_ptr)>& done) override {
    if (ticket.value <= done_) {
      clock_.after({}, [done] { done(nullptr); });
    } else {
      waiting_.emplace(ticket.value, done);
    }
    return true;
  }

 private:
  void push(std::size_t bytes) {
    copies_.push_back(bytes);
    ++issued_;
    if (copies_.size() == 1) begin();
  }
  // One after the other: what of a link's time it takes is known when it begins.
  void begin() {
    const RunClock::Time now = clock_.now();
    const RunClock::Time end = reserve(path_, copies_.front(), now);
    clock_.after(clock_.varied(end - now), [this] { finish(); });
  }
  void finish() {
    copies_.pop_front();
    ++done_;
    if (!copies_.empty()) begin();
    clock_.notify(changed_);
    while (!waiting_.empty() && waiting_.begin()->first <= done_) {
      const auto done = std::move(waiting_.begin()->second);
      waiting_.erase(waiting_.begin());
      done(nullptr);
    }
  }

  SimulatedClock& clock_;
  const std::uint32_t index_;
  const LinkPath path_;
  std::deque<std::size_t> copies_;
  std::uint64_t issued_ = 0, done_ = 0;
  std::multimap<std::uint64_t, std::function<void(std::exception_ptr)>> waiting_;
  std::condition_variable changed_;
};

class NoRows final : public RowWork {
 public:
  void run(const RowCall&) const override { OOC_CHECK(false); }
};
class NoEdges final : public EdgeWork {
 public:
  void run(const EdgeWindow&, const EdgeCall&) const override { OOC_CHECK(false); }
};

class SimulatedDevice final : public Backend {
 public:
  SimulatedDevice(SimulatedClock& clock, const SimulatedDeviceOptions& options)
      : options_(options),
        computing_(clock, options.tasks_at_once),
        compute_(clock, 0, {}),
        in_(clock, 1, options.links.in),
        out_(clock, 2, options.links.out),
        peer_(clock, 3, options.links.peer) {
    options_.shape.host_tiles = false;
  }

  const std::string& name() const override { return options_.name; }
  const ComputeShape& shape() const override { return options_.shape; }
  bool host_accessible() const override { return options_.host_accessible; }
  SimulatedCompute* simulated() override { return &computing_; }
  std::unique_ptr<DeviceBuffer> allocate(std::size_t bytes) override {
    return std::make_unique<Addresses>(bytes, name());
  }
  std::unique_ptr<PinnedBuffer> allocate_pinned(std::size_t bytes,
                                                std::string_view owner) override {
    return std::make_unique<Addresses>(bytes, owner);
  }
  std::int64_t memory_peak() const override { return 0; }
  Queue& queue(QueueKind kind) override {
    if (kind == QueueKind::kCompute) return compute_;
    if (kind == QueueKind::kPeer) return peer_;
    return kind == QueueKind::kIn ? in_ : out_;
  }
  void optimize(const OptimizerStep&) override {}
  void accumulate(DType, std::int64_t, void*, const void*) override {}
  void sum_leaves(const LeafSum&) override {}

 private:
  std::unique_ptr<RowWork> make_row_work(const RowProgram&) const override {
    return std::make_unique<NoRows>();
  }
  std::unique_ptr<EdgeWork> make_edge_work(const EdgeProgram&) const override {
    return std::make_unique<NoEdges>();
  }

  SimulatedDeviceOptions options_;
  SimulatedCompute computing_;
  SimulatedQueue compute_, in_, out_, peer_;
};

}  // namespace

std::unique_ptr<Backend> make_simulated_device(SimulatedClock& clock,
                                               const SimulatedDeviceOptions& options) {
  return std::make_unique<SimulatedDevice>(clock, options);
}

}  // namespace ooc
