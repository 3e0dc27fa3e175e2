#include "storage/simulate/simulated_clock.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace ooc {

SimulatedClock::Duration SimulatedClock::seconds(double count) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(count));
}

std::uint64_t SimulatedClock::random(std::uint64_t below) {
  return static_cast<std::uint64_t>(
      CounterRandom(*seed_, 0).below(drawn_++, static_cast<std::int64_t>(below)));
}

SimulatedClock::Duration SimulatedClock::varied(Duration duration) {
  constexpr std::uint64_t kThirds = 10;
  if (!seed_) return duration;
  return duration * static_cast<Duration::rep>(random(kThirds)) / 3;
}

void SimulatedClock::after(Duration duration, std::function<void()> event) {
  const std::lock_guard own(mutex_);
  events_.push({now_ + duration, numbers_++, std::move(event)});
}

void SimulatedClock::notify(std::condition_variable& changed) {
  const std::lock_guard own(mutex_);
  for (Waiting* waiting : waiting_) waiting->ready |= waiting->changed == &changed;
}

void SimulatedClock::wait(std::unique_lock<std::mutex>& lock, std::condition_variable& changed) {
  Waiting self;
  self.changed = &changed;
  sleep(lock, self);
}

void SimulatedClock::wait_for(std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
                              Duration longest) {
  Waiting self;
  self.changed = &changed;
  self.until = now_ + longest;
  sleep(lock, self);
}

void SimulatedClock::sleep(std::unique_lock<std::mutex>& lock, Waiting& self) {
  {
    std::unique_lock own(mutex_);
    waiting_.push_back(&self);
    lock.unlock();
    pass_on(own);
    self.turn.wait(own, [&self] { return self.runs; });
  }
  lock.lock();
}

// To a thread that can go on, once there is one.
void SimulatedClock::pass_on(std::unique_lock<std::mutex>& own) {
  Waiting* next = take_ready();
  while (next == nullptr && make_ready(own)) next = take_ready();
  if (next == nullptr) return;
  next->runs = true;
  next->turn.notify_one();
}

SimulatedClock::Waiting* SimulatedClock::take_ready() {
  const auto is_ready = [this](const Waiting* waiting) { return waiting->ready || stands_still_; };
  const auto count = std::count_if(waiting_.begin(), waiting_.end(), is_ready);
  if (count == 0) return nullptr;
  std::uint64_t skipped = seed_ ? random(static_cast<std::uint64_t>(count)) : 0;
  const auto found = std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting* waiting) {
    return is_ready(waiting) && skipped-- == 0;
  });
  Waiting* const taken = *found;
  waiting_.erase(found);
  return taken;
}

// The next event happens, or the next thread has waited as long as it wanted to. False: nobody
// waits.
bool SimulatedClock::make_ready(std::unique_lock<std::mutex>& own) {
  if (waiting_.empty()) return false;
  Waiting* first = nullptr;
  for (Waiting* waiting : waiting_) {
    if (!waiting->until) continue;
    if (first == nullptr || *waiting->until < *first->until) first = waiting;
  }
  if (!events_.empty() && (first == nullptr || events_.top().time <= *first->until)) {
    Event event = events_.top();
    events_.pop();
    now_ = event.time;
    awoken_ = 0;
    own.unlock();
    event.happen();
    event.happen = nullptr;
    own.lock();
  } else if (first != nullptr && (!events_.empty() || awoken_++ <= waiting_.size())) {
    now_ = *first->until;
    first->ready = true;
  } else {
    stands_still_ = true;
  }
  return true;
}

std::thread SimulatedClock::start(std::function<void()> work) {
  const auto self = std::make_shared<Waiting>();
  self->ready = true;
  std::thread thread([this, self, work = std::move(work)] {
    {
      std::unique_lock own(mutex_);
      self->turn.wait(own, [&] { return self->runs; });
    }
    work();
    std::unique_lock own(mutex_);
    ended_.insert(std::this_thread::get_id());
    for (Waiting* waiting : waiting_) waiting->ready |= waiting->changed == &has_ended_;
    pass_on(own);
  });
  const std::lock_guard own(mutex_);
  waiting_.push_back(self.get());
  return thread;
}

void SimulatedClock::join(std::thread& thread) {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  const auto has_ended = [&] {
    const std::lock_guard own(mutex_);
    return ended_.erase(thread.get_id()) > 0;
  };
  while (!has_ended()) wait(lock, has_ended_);
  thread.join();
}

}  // namespace ooc
