#include "kernels/device/virtual_device.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "kernels/device/cpu_backend.h"
#include "kernels/device/host_buffer.h"
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
      buffer_ = make_host_buffer(bytes, device);
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
  std::unique_ptr<DeviceBuffer> buffer_;
};

// Copies, one after the other, by a thread of its own.
class CopyStream {
 public:
  CopyStream() : thread_([this] { serve(); }) {}
  ~CopyStream() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  CopyStream(const CopyStream&) = delete;
  CopyStream& operator=(const CopyStream&) = delete;

  // Without bytes: an event.
  Event push(void* to, const void* from, std::size_t bytes) {
    Event event;
    {
      const std::lock_guard lock(mutex_);
      copies_.push_back({to, from, bytes});
      event.value = ++issued_;
    }
    changed_.notify_all();
    return event;
  }
  void wait(Event event) {
    std::unique_lock lock(mutex_);
    OOC_CHECK(event.value <= issued_);
    changed_.wait(lock, [&] { return done_ >= event.value; });
  }

 private:
  struct Copy {
    void* to;
    const void* from;
    std::size_t bytes;
  };

  // Ends when it is asked to and nothing is left.
  void serve() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stopping_ || !copies_.empty(); });
      if (copies_.empty()) return;
      const Copy copy = copies_.front();
      copies_.pop_front();
      lock.unlock();
      if (copy.bytes > 0) std::memcpy(copy.to, copy.from, copy.bytes);
      lock.lock();
      ++done_;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Copy> copies_;
  std::uint64_t issued_ = 0, done_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

class VirtualDevice final : public Backend {
 public:
  VirtualDevice(std::string name, std::int64_t memory_bytes)
      : name_(std::move(name)), memory_(name_, memory_bytes), kernels_(make_cpu_backend()) {}

  const std::string& name() const override { return name_; }
  bool host_accessible() const override { return false; }

  std::unique_ptr<DeviceBuffer> allocate(std::size_t bytes) override {
    return std::make_unique<VirtualBuffer>(memory_, bytes, name_);
  }
  std::int64_t memory_peak() const override { return memory_.peak(); }
  void copy(void* to, const void* from, std::size_t bytes, CopyKind) override {
    if (bytes > 0) stream_.push(to, from, bytes);
  }
  void zero(void* data, std::size_t bytes) override { kernels_->zero(data, bytes); }
  Event record() override { return stream_.push(nullptr, nullptr, 0); }
  void wait(Event event) override { stream_.wait(event); }

  RowKernel row_kernel(std::string_view op, DType dtype) const override {
    return kernels_->row_kernel(op, dtype);
  }
  std::unique_ptr<EdgeKernel> edge_kernel(const EdgeProgram& program) const override {
    return kernels_->edge_kernel(program);
  }
  void optimize(const OptimizerStep& step) override { kernels_->optimize(step); }
  void accumulate(DType dtype, std::int64_t count, void* to, const void* from) override {
    kernels_->accumulate(dtype, count, to, from);
  }
  void widen(DType from_dtype, const void* from, DType to_dtype, void* to,
             std::int64_t count) override {
    kernels_->widen(from_dtype, from, to_dtype, to, count);
  }

 private:
  std::string name_;
  Memory memory_;
  std::unique_ptr<Backend> kernels_;
  CopyStream stream_;
};

}  // namespace

std::unique_ptr<Backend> make_virtual_cpu_device(std::string name, std::int64_t memory_bytes) {
  return std::make_unique<VirtualDevice>(std::move(name), memory_bytes);
}

}  // namespace ooc
