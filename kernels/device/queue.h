// What a device is asked to do, in order: copies, zeroes and kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>

namespace ooc {

// A point in a queue; `value` counts from 1, 0 is the beginning of time.
struct Ticket {
  std::uint32_t queue = 0;
  std::uint64_t value = 0;
};

// kIn, kOut: copies from the host's memory and to it. kPeer: from another device's.
enum class QueueKind { kCompute, kIn, kOut, kPeer };
inline constexpr int kQueueKinds = 4;

// Calls return at once, before the work is done, but for a queue that runs inline
// (ComputeShape::runs_inline): until a ticket that was recorded later has been waited for, nothing
// may change what the work reads, or touch what it writes. Queues of a device run beside each
// other. Threads: all of it may be called from many. Errors: DeviceError, with the device's name,
// from wait() where the work failed.
class Queue {
 public:
  virtual ~Queue() = default;
  // Between two places of the device's memory, or one of them and the host's, or, to the device,
  // another device's.
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  virtual void zero(void* data, std::size_t bytes) = 0;
  // After everything that was asked for so far.
  virtual Ticket record() = 0;
  // What is asked for later waits, on the device, until the ticket's queue has come to it.
  virtual void follow(Ticket ticket) = 0;
  // Sleeps until this queue has come to one of its own tickets.
  virtual void wait(Ticket ticket) = 0;
  // Calls `done` once this queue has come to one of its own tickets, from a thread that holds no
  // locks, and returns true. False: it can't, and somebody has to wait.
  virtual bool after(Ticket /*ticket*/, const std::function<void(std::exception_ptr)>& /*done*/) {
    return false;
  }
};

}  // namespace ooc
