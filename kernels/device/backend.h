// The one interface between sched/ and kernels/: a device's memory, its queues and its kernels.
// Implementations: the CPU, whose memory is the host's (cpu_backend.h); the CPU as a device with
// memory of its own (virtual_device.h).
//
// Kernels run on the compute queue: a call returns before its work is done, except on a device that
// runs them inline, on the thread that calls.
// Threads: all of it may be called from many threads.
// Errors: DeviceError, with the device's name; BudgetError where memory does not suffice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "kernels/device/queue.h"
#include "kernels/spec/check_program.h"
#include "kernels/spec/compute_shape.h"
#include "kernels/spec/edge_program.h"
#include "kernels/spec/optimizer.h"
#include "kernels/spec/row_program.h"

namespace ooc {

// Owned device memory, 4 KiB aligned and zeroed; freed by its destructor.
class DeviceBuffer {
 public:
  virtual ~DeviceBuffer() = default;
  virtual std::byte* data() const = 0;  // dereferenced by the host only if host_accessible()
  virtual std::size_t bytes() const = 0;
};

// Owned host memory that copies of a device read and write at the link's full speed. Otherwise as a
// HostBuffer (host_buffer.h).
class PinnedBuffer {
 public:
  virtual ~PinnedBuffer() = default;
  virtual std::byte* data() const = 0;
  virtual std::size_t bytes() const = 0;
};

// Partial sums that lie beside each other, into one: a full binary tree of them, left + right.
struct LeafSum {
  DType dtype = DType::kF32;  // fp32 or fp64
  std::int64_t count = 0;     // elements
  std::byte* to = nullptr;
  std::byte* from = nullptr;
  std::int64_t stride = 0;  // bytes between two of them
  std::int64_t leaves = 0;  // a power of two, 2^kMostLeavesLevel at most
};
inline constexpr int kMostLeavesLevel = 8;

class SimulatedCompute;

class Backend {
 public:
  virtual ~Backend() = default;
  // Of a device that isn't there (simulated_device.h): what is to be computed is given to it, with
  // the time that it takes, and no kernels are called. Null: the device computes.
  virtual SimulatedCompute* simulated() { return nullptr; }
  virtual const std::string& name() const = 0;
  virtual const ComputeShape& shape() const = 0;
  // Whether the host may read and write device memory in place: then nothing is ever copied.
  virtual bool host_accessible() const = 0;

  // Buffers must not outlive the backend.
  virtual std::unique_ptr<DeviceBuffer> allocate(std::size_t bytes) = 0;
  // BudgetError names `owner`.
  virtual std::unique_ptr<PinnedBuffer> allocate_pinned(std::size_t bytes,
                                                        std::string_view owner) = 0;
  // The most bytes of device memory that were allocated at once; 0 if host_accessible(), since that
  // is the process's own memory and counted there.
  virtual std::int64_t memory_peak() const = 0;
  virtual Queue& queue(QueueKind kind) = 0;

  // Made once per program, when its passes are built. An operator without a kernel, or operands
  // that it doesn't take (kernels/spec/check_program.h), are a programmer's mistake.
  std::unique_ptr<RowWork> row_work(const RowProgram& program) const {
    check_program(program);
    return make_row_work(program);
  }
  std::unique_ptr<EdgeWork> edge_work(const EdgeProgram& program) const {
    check_program(program);
    return make_edge_work(program);
  }
  virtual void optimize(const OptimizerStep& step) = 0;
  // to[i] += from[i] for `count` elements of fp32 or fp64: how partial reductions are merged.
  virtual void accumulate(DType dtype, std::int64_t count, void* to, const void* from) = 0;
  // Overwrites the leaves.
  virtual void sum_leaves(const LeafSum& sum);

 protected:
  virtual std::unique_ptr<RowWork> make_row_work(const RowProgram& program) const = 0;
  virtual std::unique_ptr<EdgeWork> make_edge_work(const EdgeProgram& program) const = 0;
};

}  // namespace ooc
