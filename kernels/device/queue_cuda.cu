#include "kernels/device/queue_cuda.h"

#include <algorithm>

#include "kernels/cuda/launch_cuda.h"
#include "storage/base/errors.h"

namespace ooc::cuda {

EventPool::~EventPool() {
  for (cudaEvent_t event : idle_) cudaEventDestroy(event);
}

Event EventPool::take(const std::shared_ptr<EventPool>& pool) {
  cudaEvent_t event = nullptr;
  {
    const std::lock_guard lock(pool->mutex_);
    if (!pool->idle_.empty()) {
      event = pool->idle_.back();
      pool->idle_.pop_back();
    }
  }
  if (event == nullptr) {
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventBlockingSync),
          "making an event");
  }
  return {event, [pool](cudaEvent_t used) {
            const std::lock_guard lock(pool->mutex_);
            pool->idle_.push_back(used);
          }};
}

StreamQueue::StreamQueue(int device, std::uint32_t index, std::shared_ptr<EventPool> events,
                         std::function<Event(Ticket)> others)
    : device_(device), index_(index), pool_(std::move(events)), others_(std::move(others)) {
  use_device(device_);
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
}

// Errors are nobody's any more.
StreamQueue::~StreamQueue() {
  cudaSetDevice(device_);
  cudaStreamSynchronize(stream_);
  cudaStreamDestroy(stream_);
}

void StreamQueue::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  use_device(device_);
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), "copying");
}

void StreamQueue::zero(void* data, std::size_t bytes) {
  if (bytes == 0) return;
  use_device(device_);
  check(cudaMemsetAsync(data, 0, bytes, stream_), "zeroing");
}

// Under the lock, so that events are in the order of their tickets.
Ticket StreamQueue::record() {
  use_device(device_);
  const std::lock_guard lock(mutex_);
  while (!events_.empty() && cudaEventQuery(events_.front().second.get()) == cudaSuccess) {
    events_.pop_front();
  }
  Event event = EventPool::take(pool_);
  check(cudaEventRecord(event.get(), stream_), "recording an event");
  events_.emplace_back(++issued_, std::move(event));
  return {index_, issued_};
}

Event StreamQueue::event_of(Ticket ticket) {
  const std::lock_guard lock(mutex_);
  OOC_CHECK(ticket.queue == index_ && ticket.value <= issued_);
  const auto found = std::lower_bound(events_.begin(), events_.end(), ticket.value,
                                      [](const std::pair<std::uint64_t, Event>& at,
                                         std::uint64_t value) { return at.first < value; });
  return ticket.value == 0 || found == events_.end() || found->first != ticket.value
             ? nullptr
             : found->second;
}

void StreamQueue::follow(Ticket ticket) {
  if (ticket.value == 0 || ticket.queue == index_) return;
  const Event event = others_(ticket);
  if (event == nullptr) return;
  use_device(device_);
  check(cudaStreamWaitEvent(stream_, event.get(), 0), "waiting for another queue");
}

void StreamQueue::wait(Ticket ticket) {
  const Event event = event_of(ticket);
  use_device(device_);
  if (event != nullptr) check(cudaEventSynchronize(event.get()), "waiting for the device");
}

}  // namespace ooc::cuda
