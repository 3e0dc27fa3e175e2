#include "kernels/device/async_queue.h"

#include <cstring>
#include <utility>

#include "storage/base/errors.h"

namespace ooc {

AsyncQueue::AsyncQueue(std::uint32_t index, std::function<void(Ticket)> others,
                       std::function<void()> before)
    : index_(index),
      others_(std::move(others)),
      before_(std::move(before)),
      thread_([this] { serve(); }) {}

AsyncQueue::~AsyncQueue() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void AsyncQueue::push(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
    ++issued_;
  }
  changed_.notify_all();
}

void AsyncQueue::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) push([=] { std::memcpy(to, from, bytes); });
}

void AsyncQueue::zero(void* data, std::size_t bytes) {
  if (bytes > 0) push([=] { std::memset(data, 0, bytes); });
}

Ticket AsyncQueue::record() {
  const std::lock_guard lock(mutex_);
  return {index_, issued_};
}

void AsyncQueue::follow(Ticket ticket) {
  if (ticket.queue == index_) return;
  push([this, ticket] { others_(ticket); });
}

void AsyncQueue::wait(Ticket ticket) {
  std::unique_lock lock(mutex_);
  OOC_CHECK(ticket.queue == index_ && ticket.value <= issued_);
  changed_.wait(lock, [&] { return done_ >= ticket.value; });
  if (error_) std::rethrow_exception(error_);
}

// Ends when it is asked to and nothing is left.
void AsyncQueue::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return closing_ || !work_.empty(); });
    if (work_.empty()) return;
    std::function<void()> work = std::move(work_.front());
    work_.pop_front();
    lock.unlock();
    std::exception_ptr error;
    try {
      if (before_) before_();
      work();
    } catch (...) {
      error = std::current_exception();
    }
    work = nullptr;
    lock.lock();
    if (error && !error_) error_ = error;
    ++done_;
    changed_.notify_all();
  }
}

}  // namespace ooc
