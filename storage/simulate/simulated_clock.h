// A clock that stands while anything can be done, and then jumps to what happens next: a run takes
// the time that its events say, however long that takes here.
//
// Of the threads that wait by it, and the one that made it, one runs at a time, the others sleep
// until it waits: what happens at one time happens in an order that depends on nothing but the
// seed. What they share needs no locks of its own against each other.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <utility>

#include "storage/base/counter_random.h"
#include "storage/base/run_clock.h"

namespace ooc {

class SimulatedClock final : public RunClock {
 public:
  // Without a seed those who can go on do so in the order in which they could, and events take as
  // long as is said; with one in any order, and events take up to three times as long, or no time.
  explicit SimulatedClock(std::optional<std::uint64_t> seed = std::nullopt) : seed_(seed) {}

  // `event` happens so much later, on some thread that waits, which holds no locks then.
  void after(Duration duration, std::function<void()> event);
  // That a seed makes of it.
  Duration varied(Duration duration);
  static Duration seconds(double count);

  Time now() const override { return now_; }
  void wait(std::unique_lock<std::mutex>& lock, std::condition_variable& changed) override;
  void wait_for(std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
                Duration longest) override;
  void notify(std::condition_variable& changed) override;
  bool stands_still() const override { return stands_still_; }
  std::thread start(std::function<void()> work) override;
  void join(std::thread& thread) override;

 private:
  struct Waiting {
    std::condition_variable* changed = nullptr;
    std::optional<Time> until;
    bool ready = false, runs = false;
    std::condition_variable turn;
  };
  struct Event {
    Time time;
    std::uint64_t number = 0;  // of those at one time the first goes first
    std::function<void()> happen;
    bool operator<(const Event& other) const {
      return std::pair(other.time, other.number) < std::pair(time, number);
    }
  };

  void sleep(std::unique_lock<std::mutex>& lock, Waiting& self);
  void pass_on(std::unique_lock<std::mutex>& own);
  bool make_ready(std::unique_lock<std::mutex>& own);
  Waiting* take_ready();
  std::uint64_t random(std::uint64_t below);

  const std::optional<std::uint64_t> seed_;
  std::uint64_t drawn_ = 0;
  std::mutex mutex_;
  Time now_{};
  std::uint64_t numbers_ = 0;
  std::priority_queue<Event> events_;
  std::list<Waiting*> waiting_;
  std::size_t awoken_ = 0;  // in turn, because their time was over, since anything happened
  bool stands_still_ = false;
  std::set<std::thread::id> ended_;
  std::condition_variable has_ended_;
};

}  // namespace ooc
