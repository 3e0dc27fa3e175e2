#include "sched/workers/driver.h"

#include <chrono>
#include <thread>
#include <utility>

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace ooc {
namespace {

using Clock = std::chrono::steady_clock;

// A signal sets the stop flag and wakes nobody.
constexpr std::chrono::milliseconds kStopPoll{50};

// ThreadSanitizer doesn't see into TBB, which hands what one thread wrote to another.
void hand_over([[maybe_unused]] void* what) {
#if defined(__SANITIZE_THREAD__)
  __tsan_release(what);
#endif
}
void take_over([[maybe_unused]] void* what) {
#if defined(__SANITIZE_THREAD__)
  __tsan_acquire(what);
#endif
}

// A task's own captures are written while it is handed over. They are read here alone, in a frame
// that tests/tsan_suppressions.txt names.
[[gnu::noinline]] Driver* read_capture(Driver* const& captured) { return captured; }

}  // namespace

Driver::Driver(std::int64_t workers, std::int64_t drivers)
    : workers_(workers),
      threads_(tbb::global_control::max_allowed_parallelism,
               static_cast<std::size_t>(workers * drivers) + 1),
      arena_(static_cast<int>(workers), 0) {}

Driver::~Driver() { drain(); }

// An arena for one thread has two places, of which one is taken at a time.
std::size_t Driver::worker() const {
  return static_cast<std::size_t>(tbb::this_task_arena::current_thread_index() % workers_);
}

void Driver::finish(std::exception_ptr error, std::atomic<std::int64_t>& pending,
                    std::function<void()>& then) {
  const std::lock_guard lock(mutex_);
  if (error) {
    if (!error_) error_ = error;
  } else if (then) {
    then();
  }
  then = nullptr;
  --pending;
  if (error || should_wake()) changed_.notify_all();
}

// On a machine with as many workers as processors the driving thread takes one of them a processor.
bool Driver::should_wake() const {
  if (tasks_ > enough_tasks(workers_)) return false;
  return tasks_ < workers_ || !wakes_ || wakes_();
}

// TBB takes what is enqueued in an order of its own: it gets as many turns as there are tasks.
void Driver::run(std::function<void()> work, std::function<void()> then, Turn turn) {
  ++tasks_;
  {
    const std::lock_guard lock(queue_mutex_);
    (turn == Turn::kNext ? next_ : queue_).push_back({std::move(work), std::move(then)});
  }
  hand_over(&arena_);
  ++handing_over_;
  arena_.enqueue([self = this] {
    Driver* const driver = read_capture(self);
    take_over(&driver->arena_);
    driver->run_next();
  });
  --handing_over_;
}

void Driver::run_next() {
  Task task;
  {
    const std::lock_guard lock(queue_mutex_);
    std::deque<Task>& queue = next_.empty() ? queue_ : next_;
    task = std::move(queue.front());
    queue.pop_front();
  }
  std::exception_ptr error;
  const auto begin = Clock::now();
  try {
    task.work();
  } catch (...) {
    error = std::current_exception();
  }
  compute_ns_ += std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count();
  task.work = nullptr;
  finish(error, tasks_, task.then);
}

BlockCompletion Driver::expect(std::function<void()> then) {
  return count(transfers_, std::move(then));
}

BlockCompletion Driver::expect_task(std::function<void()> then) {
  return count(tasks_, std::move(then));
}

BlockCompletion Driver::count(std::atomic<std::int64_t>& pending, std::function<void()> then) {
  ++pending;
  return [this, &pending, then = std::move(then)](std::exception_ptr error) mutable {
    finish(error, pending, then);
  };
}

bool Driver::wait(std::unique_lock<std::mutex>& lock, WaitCause cause,
                  const std::function<void()>& advance, const std::function<bool()>& ready,
                  const std::function<bool()>& may_advance) {
  while (true) {
    if (error_) std::rethrow_exception(error_);
    if (stop_ != nullptr && stop_->load(std::memory_order_relaxed)) return false;
    advance();
    if (ready()) return true;
    const bool idle = tasks_ < workers_;
    const auto begin = Clock::now();
    wakes_ = [&] { return ready() || may_advance(); };
    changed_.wait_for(lock, kStopPoll);
    wakes_ = nullptr;
    if (idle) {
      wait_seconds_[static_cast<std::size_t>(cause)] +=
          std::chrono::duration<double>(Clock::now() - begin).count();
    }
  }
}

bool Driver::wait_for_room(std::unique_lock<std::mutex>& lock,
                           const std::function<void()>& advance) {
  if (tasks_ < tasks_at_once(workers_)) return true;
  const auto ready = [this] { return tasks_ < tasks_at_once(workers_); };
  return wait(lock, WaitCause::kWorkers, advance, ready);
}

void Driver::drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return tasks_ == 0 && transfers_ == 0; });
  error_ = nullptr;
  // A task may be done before the thread that handed it out has left the arena.
  while (handing_over_ > 0) std::this_thread::yield();
}

double Driver::take_compute_seconds() {
  return static_cast<double>(compute_ns_.exchange(0)) * 1e-9;
}

double Driver::take_wait_seconds(WaitCause cause) {
  const std::lock_guard lock(mutex_);
  return std::exchange(wait_seconds_[static_cast<std::size_t>(cause)], 0);
}

}  // namespace ooc
