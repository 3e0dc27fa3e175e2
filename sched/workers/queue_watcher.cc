#include "sched/workers/queue_watcher.h"

#include <utility>

#include "storage/base/wakeup_latency.h"

namespace ooc {

QueueWatcher::QueueWatcher(Queue& queue) : queue_(queue), thread_([this] { serve(); }) {}

QueueWatcher::~QueueWatcher() {
  watched_.close();
  thread_.join();
}

void QueueWatcher::after(Ticket ticket, BlockCompletion done) {
  if (queue_.after(ticket, done)) return;
  watched_.push({ticket, nullptr, std::move(done)});
}

void QueueWatcher::complete(std::exception_ptr error, BlockCompletion done) {
  const auto at_once = [error, done](const std::exception_ptr&) { done(error); };
  if (queue_.after({}, at_once)) return;
  watched_.push({std::nullopt, std::move(error), std::move(done)});
}

void QueueWatcher::serve() {
  reduce_wakeup_latency();
  while (std::optional<Watched> next = watched_.pop()) {
    if (next->ticket) {
      try {
        queue_.wait(*next->ticket);
      } catch (...) {
        next->error = std::current_exception();
      }
    }
    next->done(std::move(next->error));
  }
}

}  // namespace ooc
