#include "kernels/device/virtual_device.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "kernels/device/async_queue.h"
#include "kernels/device/cpu_backend.h"
#include "kernels/device/host_buffer.h"
#include "kernels/device/inline_queue.h"
#include "storage/base/byte_size.h"
#include "storage/base/errors.h"

namespace ooc {
namespace {

// What is allocated of a device's memory. Many threads.
class Memory {
 public:
  Memory(const std::string& device, std::int64_t capacity) : device_(device), capacity_(capacity) {}

  void take(std::int64_t bytes) {
    const std::lock_guard lock(mutex_);
    const std::int64_t free = capacity_ - used_;
    if (capacity_ > 0 && bytes > free) {
      throw BudgetError("no room for a buffer of " + format_byte_size(bytes) +
                            " in the device's memory: " + format_byte_size(free) + " of " +
                            format_byte_size(capacity_) + " are free",
                        device_, "raise --device-memory");
    }
    used_ += bytes;
    peak_ = std::max(peak_, used_);
  }
  void give_back(std::int64_t bytes) {
    const std::lock_guard lock(mutex_);
    used_ -= bytes;
  }
  std::int64_t peak() const {
    const std::lock_guard lock(mutex_);
    return peak_;
  }

 private:
  const std::string& device_;
  const std::int64_t capacity_;
  mutable std::mutex mutex_;
  std::int64_t used_ = 0, peak_ = 0;
};

class VirtualBuffer final : public DeviceBuffer {
 public:
  VirtualBuffer(Memory& memory, std::size_t bytes, const std::string& device)
      : memory_(memory), bytes_(bytes) {
    memory_.take(static_cast<std::int64_t>(bytes));
    try {
      buffer_ = std::make_unique<HostBuffer>(bytes, device);
    } catch (...) {
      memory_.give_back(static_cast<std::int64_t>(bytes));
      throw;
    }
  }
  ~VirtualBuffer() override { memory_.give_back(static_cast<std::int64_t>(bytes_)); }
  VirtualBuffer(const VirtualBuffer&) = delete;
  VirtualBuffer& operator=(const VirtualBuffer&) = delete;

  std::byte* data() const override { return buffer_->data(); }
  std::size_t bytes() const override { return bytes_; }

 private:
  Memory& memory_;
  std::size_t bytes_;
  std::unique_ptr<HostBuffer> buffer_;
};

// Its copies take as long as the links that they cross.
class LinkQueue final : public AsyncQueue {
 public:
  LinkQueue(std::uint32_t index, std::function<void(Ticket)> others, LinkPath path)
      : AsyncQueue(index, std::move(others)), path_(std::move(path)) {}

  void copy(void* to, const void* from, std::size_t bytes) override {
    if (path_.empty() || bytes == 0) return AsyncQueue::copy(to, from, bytes);
    push([path = path_, to, from, bytes] {
      const RunClock::Time end = reserve(path, bytes, machine_clock().now());
      std::memcpy(to, from, bytes);
      std::this_thread::sleep_until(end);
    });
  }

 private:
  const LinkPath path_;
};

class VirtualDevice final : public Backend {
 public:
  VirtualDevice(std::string name, std::int64_t memory_bytes, VirtualLinks links)
      : name_(std::move(name)),
        memory_(name_, memory_bytes),
        cpu_(make_cpu_backend()),
        in_(
            kIn, [this](Ticket ticket) { wait_for(ticket); }, std::move(links.in)),
        out_(
            kOut, [this](Ticket ticket) { wait_for(ticket); }, std::move(links.out)),
        peer_(
            kPeer, [this](Ticket ticket) { wait_for(ticket); }, std::move(links.peer)) {}

  const std::string& name() const override { return name_; }
  const ComputeShape& shape() const override { return cpu_->shape(); }
  bool host_accessible() const override { return false; }

  std::unique_ptr<DeviceBuffer> allocate(std::size_t bytes) override {
    return std::make_unique<VirtualBuffer>(memory_, bytes, name_);
  }
  std::unique_ptr<PinnedBuffer> allocate_pinned(std::size_t bytes,
                                                std::string_view owner) override {
    return make_host_pinned_buffer(bytes, owner);
  }
  std::int64_t memory_peak() const override { return memory_.peak(); }
  Queue& queue(QueueKind kind) override {
    if (kind == QueueKind::kCompute) return compute_;
    if (kind == QueueKind::kPeer) return peer_;
    return kind == QueueKind::kIn ? in_ : out_;
  }

  void optimize(const OptimizerStep& step) override { cpu_->optimize(step); }
  void accumulate(DType dtype, std::int64_t count, void* to, const void* from) override {
    cpu_->accumulate(dtype, count, to, from);
  }

 private:
  std::unique_ptr<RowWork> make_row_work(const RowProgram& program) const override {
    return cpu_->row_work(program);
  }
  std::unique_ptr<EdgeWork> make_edge_work(const EdgeProgram& program) const override {
    return cpu_->edge_work(program);
  }

  // What runs inline is done when it is asked for.
  void wait_for(Ticket ticket) {
    if (ticket.value == 0) return;
    (ticket.queue == kIn ? in_ : ticket.queue == kOut ? out_ : peer_).wait(ticket);
  }

  static constexpr std::uint32_t kIn = 1, kOut = 2, kPeer = 3;
  std::string name_;
  Memory memory_;
  std::unique_ptr<Backend> cpu_;
  InlineQueue compute_{[this](Ticket ticket) { wait_for(ticket); }};
  LinkQueue in_, out_, peer_;
};

}  // namespace

VirtualLinks links_at(std::int64_t rate) {
  if (rate == 0) return {};
  const auto link = [rate] { return std::make_shared<SharedLink>(static_cast<double>(rate)); };
  return {{link()}, {link()}, {}};
}

std::unique_ptr<Backend> make_virtual_cpu_device(std::string name, std::int64_t memory_bytes,
                                                 VirtualLinks links) {
  return std::make_unique<VirtualDevice>(std::move(name), memory_bytes, std::move(links));
}

}  // namespace ooc
