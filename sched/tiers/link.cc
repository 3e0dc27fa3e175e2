#include "sched/tiers/link.h"

#include <utility>

#include "storage/base/wakeup_latency.h"

namespace ooc {

Link::Link(Backend& backend) : backend_(backend), thread_([this] { serve(); }) {}

Link::~Link() {
  copies_.close();
  thread_.join();
}

void Link::copy(void* to, const void* from, std::size_t bytes, CopyKind kind,
                BlockCompletion done) {
  // Held meanwhile, so that events are waited for in the order of the stream.
  const std::lock_guard lock(issuing_);
  Copy copy;
  copy.done = std::move(done);
  try {
    backend_.copy(to, from, bytes, kind);
    copy.event = backend_.record();
  } catch (...) {
    copy.error = std::current_exception();
  }
  copies_.push(std::move(copy));
}

void Link::serve() {
  reduce_wakeup_latency();
  while (std::optional<Copy> copy = copies_.pop()) {
    // Whoever issued it has left copy(): with the last completion the link may go.
    { const std::lock_guard issued(issuing_); }
    if (!copy->error) {
      try {
        backend_.wait(copy->event);
      } catch (...) {
        copy->error = std::current_exception();
      }
    }
    copy->done(std::move(copy->error));
  }
}

}  // namespace ooc
