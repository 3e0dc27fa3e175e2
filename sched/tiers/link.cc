#include "sched/tiers/link.h"

#include <algorithm>
#include <utility>

namespace ooc {

Link::Link(Backend& backend, bool peers, Trace* trace, const std::string& name)
    : in_(backend.queue(QueueKind::kIn), name, "from host", trace),
      out_(backend.queue(QueueKind::kOut), name, "to host", trace) {
  if (peers) peer_.emplace(backend.queue(QueueKind::kPeer), name, "from device", trace);
}

// A copy begins when it is asked for, or when the one before it is done.
BlockCompletion Link::Way::traced(std::size_t bytes, BlockCompletion done) {
  if (trace_ == nullptr) return done;
  return [this, asked = trace_->now(), bytes, done = std::move(done)](std::exception_ptr error) {
    const auto begin = std::max(asked, free_);
    free_ = trace_->now();
    trace_->add({process_, name_, name_, begin, free_, static_cast<std::int64_t>(bytes)});
    done(std::move(error));
  };
}

void Link::to_device(std::byte* device, const std::byte* host, std::size_t bytes,
                     BlockCompletion done) {
  in_.copy(device, host, bytes, std::move(done));
}

void Link::from_device(std::byte* host, const std::byte* device, std::size_t bytes,
                       BlockCompletion done) {
  out_.copy(host, device, bytes, std::move(done));
}

void Link::from_peer(std::byte* device, const std::byte* peer, std::size_t bytes,
                     BlockCompletion done) {
  peer_.value().copy(device, peer, bytes, std::move(done));
}

// Whoever asked for the last copy has left copy(): its completion may let the link go.
Link::Way::~Way() { const std::lock_guard issued(issuing_); }

void Link::Way::copy(void* to, const void* from, std::size_t bytes, BlockCompletion done) {
  const std::lock_guard lock(issuing_);
  Ticket copied;
  try {
    queue_.copy(to, from, bytes);
    copied = queue_.record();
  } catch (...) {
    return watcher_.complete(std::current_exception(), std::move(done));
  }
  watcher_.after(copied, traced(bytes, std::move(done)));
}

}  // namespace ooc
