#include "sched/workers/driver.h"

#include <chrono>
#include <thread>
#include <utility>

#include "storage/base/errors.h"

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace ooc {
namespace {

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

Driver::Driver(std::int64_t workers, std::int64_t drivers, RunClock& clock, Precedence precedence)
    : workers_(workers),
      clock_(clock),
      threads_(tbb::global_control::max_allowed_parallelism,
               static_cast<std::size_t>(workers * drivers) + 1),
      arena_(static_cast<int>(workers), 0,
             precedence == Precedence::kFirst ? tbb::task_arena::priority::high
                                              : tbb::task_arena::priority::normal) {}

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
  if (error || should_wake()) clock_.notify(changed_);
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
  const auto begin = clock_.now();
  try {
    task.work();
  } catch (...) {
    error = std::current_exception();
  }
  spent_.compute(clock_.now() - begin);
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
    if (clock_.stands_still()) {
      throw RunError("every device waits, and nothing is under way", "the simulation",
                     "report it, with the command: it is a fault of this program");
    }
    if (stop_ != nullptr && stop_->load(std::memory_order_relaxed)) return false;
    advance();
    if (ready()) return true;
    const bool idle = tasks_ < workers_;
    const auto begin = clock_.now();
    wakes_ = [&] { return ready() || may_advance(); };
    clock_.wait_for(lock, changed_, kStopPoll);
    wakes_ = nullptr;
    if (idle) spent_.wait(cause, clock_.now() - begin);
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
  while ((tasks_ > 0 || transfers_ > 0) && !clock_.stands_still()) clock_.wait(lock, changed_);
  error_ = nullptr;
  // A task may be done before the thread that handed it out has left the arena.
  while (handing_over_ > 0) std::this_thread::yield();
}

}  // namespace ooc
