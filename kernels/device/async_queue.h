// A queue whose work a thread of its own does, one thing after the other.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "kernels/device/queue.h"

namespace ooc {

class AsyncQueue : public Queue {
 public:
  // `index`: of its tickets. `others`: waits for a ticket of another queue of the device, on this
  // one's thread. `before`: called ahead of each piece of work, by that thread; empty: nothing is.
  AsyncQueue(std::uint32_t index, std::function<void(Ticket)> others,
             std::function<void()> before = {});
  ~AsyncQueue() override;  // when all of it is done
  AsyncQueue(const AsyncQueue&) = delete;
  AsyncQueue& operator=(const AsyncQueue&) = delete;

  void push(std::function<void()> work);
  void copy(void* to, const void* from, std::size_t bytes) override;
  void zero(void* data, std::size_t bytes) override;
  Ticket record() override;
  void follow(Ticket ticket) override;
  void wait(Ticket ticket) override;

 private:
  void serve();

  const std::uint32_t index_;
  const std::function<void(Ticket)> others_;
  const std::function<void()> before_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  std::uint64_t issued_ = 0, done_ = 0;
  std::exception_ptr error_;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace ooc
