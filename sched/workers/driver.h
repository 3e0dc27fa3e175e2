// What the driving thread hands out and waits for: tasks of the workers, transfers, and the first
// error among them.
//
// The workers are the threads of a TBB arena in which the driving thread has no place: it sleeps
// while it waits, and they never wait for it or for transfers. State that tasks and completions
// share with the driving thread is read and written under lock().
#pragma once

#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>

#include "sched/workers/concurrency.h"
#include "storage/base/run_clock.h"
#include "storage/io/block_file.h"

namespace ooc {

enum class WaitCause { kReads, kWrites, kWorkers };
// Of a task: after those that were given before it, or before those that wait.
enum class Turn { kInOrder, kNext };
// Of drivers and others whose tasks wait for the same threads: as they come, or this driver's
// before them.
enum class Precedence { kEqual, kFirst };

// Many threads. What is taken is what came since the last time.
class SpentTime {
 public:
  void compute(RunClock::Duration time) { compute_ += time.count(); }
  void wait(WaitCause cause, RunClock::Duration time) { wait_[at(cause)] += time.count(); }
  // In seconds: of tasks, summed over the workers.
  double take_compute() { return seconds(compute_); }
  // Of the driving thread while a worker had nothing to do.
  double take_wait(WaitCause cause) { return seconds(wait_[at(cause)]); }

 private:
  using Ticks = std::atomic<RunClock::Duration::rep>;
  static std::size_t at(WaitCause cause) { return static_cast<std::size_t>(cause); }
  static double seconds(Ticks& ticks) {
    return std::chrono::duration<double>(RunClock::Duration(ticks.exchange(0))).count();
  }

  Ticks compute_{0};
  std::array<Ticks, 3> wait_{};
};

class Driver {
 public:
  // `drivers`: so many, each with as many workers, work beside each other. The clock outlives it.
  explicit Driver(std::int64_t workers, std::int64_t drivers = 1, RunClock& clock = machine_clock(),
                  Precedence precedence = Precedence::kEqual);
  ~Driver();  // drains
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  std::int64_t workers() const { return workers_; }
  std::int64_t tasks() const { return tasks_; }  // handed out and not done
  std::int64_t transfers() const { return transfers_; }
  // In a task: which of the workers runs it, from 0.
  std::size_t worker() const;

  std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }

  // Any thread; with or without the lock. Runs `work` on a worker, then `then` under the lock; an
  // exception of `work` ends up in wait(), and `then` is left out. Tasks begin in the order in
  // which they were given, after all those whose turn is next.
  void run(std::function<void()> work, std::function<void()> then, Turn turn = Turn::kInOrder);
  // Any thread. For a transfer: its completion calls `then` under the lock, or keeps its error.
  BlockCompletion expect(std::function<void()> then);

  // Any thread. For a task that a device does: the same, counted among the tasks.
  BlockCompletion expect_task(std::function<void()> then);

  // The driving thread. What ends its waits once it is set; null: nothing does.
  void stop_on(const std::atomic<bool>* stop) { stop_ = stop; }
  // The driving thread, with the lock held. Sleeps until ready() is true, and calls advance()
  // before it looks, so that transfers go on meanwhile. False: stopped. Throws the first
  // error of a task or a transfer. Where no more than enough_tasks() are left, the end of either
  // wakes it if ready() or may_advance(), which any thread may ask with the lock held and which
  // throw nothing, or if a worker has nothing to do; wake(), with the lock held, does so at once.
  bool wait(
      std::unique_lock<std::mutex>& lock, WaitCause cause, const std::function<void()>& advance,
      const std::function<bool()>& ready,
      const std::function<bool()>& may_advance = [] { return false; });
  // The same while tasks_at_once() are handed out, but for wake(), until enough_tasks() are left;
  // advance() may add to them.
  bool wait_for_room(std::unique_lock<std::mutex>& lock, const std::function<void()>& advance);
  void wake() { clock_.notify(changed_); }
  // Without the lock. Returns when nothing is under way any more; errors are forgotten.
  void drain();

  SpentTime& spent() { return spent_; }

 private:
  struct Task {
    std::function<void()> work, then;
  };

  void run_next();
  BlockCompletion count(std::atomic<std::int64_t>& pending, std::function<void()> then);
  bool should_wake() const;
  // What `then` holds is given back before the count goes down: after drain() nothing is left.
  void finish(std::exception_ptr error, std::atomic<std::int64_t>& pending,
              std::function<void()>& then);

  std::int64_t workers_;
  RunClock& clock_;
  tbb::global_control threads_;
  tbb::task_arena arena_;
  std::mutex queue_mutex_;  // taken last
  std::deque<Task> next_, queue_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<bool()> wakes_;  // in wait(): whether its thread has something to do; else empty
  std::atomic<std::int64_t> tasks_{0};  // counted up anywhere, down under the lock
  std::atomic<std::int64_t> transfers_{0};
  std::atomic<std::int64_t> handing_over_{0};  // threads in the arena's enqueue()
  std::exception_ptr error_;
  const std::atomic<bool>* stop_ = nullptr;
  SpentTime spent_;
};

}  // namespace ooc
