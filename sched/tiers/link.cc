#include "sched/tiers/link.h"

#include <utility>

#include "storage/base/wakeup_latency.h"

namespace ooc {

Link::Link(Backend& backend) : backend_(backend), thread_([this] { serve(); }) {}

Link::~Link() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Link::copy(void* to, const void* from, std::size_t bytes, CopyKind kind,
                BlockCompletion done) {
  // Held meanwhile, so that events are waited for in the order of the stream. Notified under it:
  // with the last copy's completion the link may go.
  const std::lock_guard lock(mutex_);
  Copy copy;
  copy.done = std::move(done);
  try {
    backend_.copy(to, from, bytes, kind);
    copy.event = backend_.record();
  } catch (...) {
    copy.error = std::current_exception();
  }
  copies_.push_back(std::move(copy));
  changed_.notify_one();
}

void Link::serve() {
  reduce_wakeup_latency();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !copies_.empty(); });
    if (copies_.empty()) return;
    Copy copy = std::move(copies_.front());
    copies_.pop_front();
    lock.unlock();
    if (!copy.error) {
      try {
        backend_.wait(copy.event);
      } catch (...) {
        copy.error = std::current_exception();
      }
    }
    copy.done(std::move(copy.error));
    copy = {};  // what the completion holds is gone before the next one
    lock.lock();
  }
}

}  // namespace ooc
