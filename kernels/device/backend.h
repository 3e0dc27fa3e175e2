// The one interface between sched/ and kernels/: a device's memory, copies, events and kernels.
// Implementations: the CPU, whose memory is the host's (cpu_backend.h); the CPU as a device with
// memory of its own (virtual_device.h).
//
// Threads: all of it may be called from many threads. Copies run in the order they are issued on
// one stream, asynchronously: until a later record() has been waited for, nothing may change what
// they read, or touch what they write. Kernels of the CPU, zero() among them, run when called and
// wait for no copy.
// Errors: DeviceError, with the device's name; BudgetError where memory does not suffice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "kernels/spec/edge_program.h"
#include "kernels/spec/operator.h"
#include "kernels/spec/optimizer.h"

namespace ooc {

// Owned device memory, 4 KiB aligned and zeroed; freed by its destructor.
class DeviceBuffer {
 public:
  virtual ~DeviceBuffer() = default;
  virtual std::byte* data() const = 0;  // dereferenced by the host only if host_accessible()
  virtual std::size_t bytes() const = 0;
};

// A point in a stream; `value` counts from 1, 0 is the beginning of time.
struct Event {
  std::uint64_t value = 0;
};

enum class CopyKind { kHostToDevice, kDeviceToHost, kDeviceToDevice };

class Backend {
 public:
  virtual ~Backend() = default;
  virtual const std::string& name() const = 0;
  // Whether the host may read and write device memory in place: then nothing is ever copied.
  virtual bool host_accessible() const = 0;

  // Buffers must not outlive the backend.
  virtual std::unique_ptr<DeviceBuffer> allocate(std::size_t bytes) = 0;
  // The most bytes that were allocated at once; 0 if host_accessible(), since that is the process's
  // own memory and counted there.
  virtual std::int64_t memory_peak() const = 0;
  virtual void copy(void* to, const void* from, std::size_t bytes, CopyKind kind) = 0;
  virtual void zero(void* data, std::size_t bytes) = 0;
  // After every copy issued so far.
  virtual Event record() = 0;
  // Sleeps until the stream has reached it.
  virtual void wait(Event event) = 0;

  // The kernel of an operator for a scalar type (fp32 or fp64). Looked up once per program, when
  // its passes are built. A name without a kernel is a programmer's mistake.
  virtual RowKernel row_kernel(std::string_view op, DType dtype) const = 0;
  // A propagation's edge program; its steps' kernels are this backend's.
  virtual std::unique_ptr<EdgeKernel> edge_kernel(const EdgeProgram& program) const = 0;
  virtual void optimize(const OptimizerStep& step) = 0;
  // to[i] += from[i] for `count` elements of fp32 or fp64: how partial reductions are merged.
  virtual void accumulate(DType dtype, std::int64_t count, void* to, const void* from) = 0;
  // to[i] = from[i] for `count` elements: fp32, fp16 or bf16 (storage/base/half.h) to fp32 or fp64.
  virtual void widen(DType from_dtype, const void* from, DType to_dtype, void* to,
                     std::int64_t count) = 0;
};

}  // namespace ooc
