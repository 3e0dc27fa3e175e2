// A queue of a GPU: a stream, whose tickets are events.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "kernels/device/queue.h"

namespace ooc::cuda {

// An event that goes back to where it came from. Shared by whoever waits for it.
using Event = std::shared_ptr<CUevent_st>;

// Events of a device that nobody uses, so that few are ever made. Many threads.
class EventPool {
 public:
  ~EventPool();
  // Keeps the pool for as long as the event lives.
  static Event take(const std::shared_ptr<EventPool>& pool);

 private:
  std::mutex mutex_;
  std::vector<cudaEvent_t> idle_;
};

class StreamQueue final : public Queue {
 public:
  // `others`: the event of a ticket of another queue of the device; null: that queue has come to
  // it.
  StreamQueue(int device, std::uint32_t index, std::shared_ptr<EventPool> events,
              std::function<Event(Ticket)> others);
  ~StreamQueue() override;  // when all of it is done
  StreamQueue(const StreamQueue&) = delete;
  StreamQueue& operator=(const StreamQueue&) = delete;

  cudaStream_t stream() const { return stream_; }
  Event event_of(Ticket ticket);

  void copy(void* to, const void* from, std::size_t bytes) override;
  void zero(void* data, std::size_t bytes) override;
  Ticket record() override;
  void follow(Ticket ticket) override;
  void wait(Ticket ticket) override;

 private:
  const int device_;
  const std::uint32_t index_;
  const std::shared_ptr<EventPool> pool_;
  const std::function<Event(Ticket)> others_;
  cudaStream_t stream_ = nullptr;
  std::mutex mutex_;
  std::uint64_t issued_ = 0;
  // Of tickets that the stream may not have come to, in order.
  std::deque<std::pair<std::uint64_t, Event>> events_;
};

}  // namespace ooc::cuda
