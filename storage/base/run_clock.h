// What time it is in a run, and how its threads wait for each other: by the machine's clock, or a
// simulated one (storage/simulate/simulated_clock.h).
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace ooc {

// The machine's. Many threads.
class RunClock {
 public:
  using Steady = std::chrono::steady_clock;
  using Time = Steady::time_point;
  using Duration = Steady::duration;

  virtual ~RunClock() = default;
  virtual Time now() const { return Steady::now(); }

  // With the lock held: until notify(), or as long as is said; perhaps shorter.
  virtual void wait(std::unique_lock<std::mutex>& lock, std::condition_variable& changed) {
    changed.wait(lock);
  }
  virtual void wait_for(std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
                        Duration longest) {
    changed.wait_for(lock, longest);
  }
  virtual void notify(std::condition_variable& changed) { changed.notify_all(); }
  // Whether all threads wait for what nothing will bring: then no wait lasts.
  virtual bool stands_still() const { return false; }

  // A thread that waits by this clock; std::system_error where none can be made. Whoever started
  // it joins it.
  virtual std::thread start(std::function<void()> work) { return std::thread(std::move(work)); }
  virtual void join(std::thread& thread) { thread.join(); }
};

RunClock& machine_clock();

}  // namespace ooc
