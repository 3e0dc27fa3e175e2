#include "sched/workers/driver.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace ooc {
namespace {

void idle() {}

}  // namespace

TEST_CASE("driver: tasks run on so many workers, each with a number of its own") {
  for (const std::int64_t workers : {1, 3}) {
    Driver driver(workers);
    std::int64_t running = 0, most = 0, done = 0;
    std::set<std::size_t> numbers;
    auto lock = driver.lock();
    for (int i = 0; i < 200; ++i) {
      driver.run(
          [&] {
            {
              const auto inside = driver.lock();
              most = std::max(most, ++running);
              numbers.insert(driver.worker());
            }
            std::this_thread::yield();
            const auto inside = driver.lock();
            --running;
          },
          [&] { ++done; });
    }
    CHECK(driver.wait(lock, WaitCause::kWorkers, idle, [&] { return done == 200; }));
    CHECK(most <= workers);
    CHECK(*numbers.rbegin() < static_cast<std::size_t>(workers));
  }
}

TEST_CASE("driver: tasks begin in the order in which they were given") {
  Driver driver(1);
  std::vector<int> begun, given;
  auto lock = driver.lock();
  for (int i = 0; i < 500; ++i) {
    given.push_back(i);
    driver.run([&, i] { begun.push_back(i); }, idle);
  }
  CHECK(driver.wait(lock, WaitCause::kWorkers, idle, [&] { return driver.tasks() == 0; }));
  CHECK(begun == given);
}

TEST_CASE("driver: tasks whose turn is next begin before those that wait") {
  Driver driver(1);
  std::vector<int> begun;
  const auto task = [&](int i) { return [&begun, i] { begun.push_back(i); }; };
  auto lock = driver.lock();
  driver.run(
      [&, task] {
        for (const int i : {1, 2}) driver.run(task(i), idle);
        for (const int i : {3, 4}) driver.run(task(i), idle, Turn::kNext);
      },
      idle);
  CHECK(driver.wait(lock, WaitCause::kWorkers, idle, [&] { return driver.tasks() == 0; }));
  CHECK(begun == std::vector<int>{3, 4, 1, 2});
}

TEST_CASE("driver: the first error of a task or a transfer is thrown by wait, once") {
  Driver driver(2);
  auto lock = driver.lock();
  bool went_on = false;
  const auto never = [] { return false; };
  SECTION("of a task") {
    driver.run([] { throw std::runtime_error("task"); }, [&] { went_on = true; });
  }
  std::thread completer;
  SECTION("of a transfer") {
    completer = std::thread([done = driver.expect([&] { went_on = true; })] {
      done(std::make_exception_ptr(std::runtime_error("transfer")));
    });
  }
  CHECK_THROWS_AS(driver.wait(lock, WaitCause::kReads, idle, never), std::runtime_error);
  CHECK(!went_on);
  lock.unlock();
  if (completer.joinable()) completer.join();
  driver.drain();
  lock.lock();
  CHECK(driver.wait(lock, WaitCause::kReads, idle, [] { return true; }));
}

TEST_CASE("driver: a set stop ends a wait that nothing wakes") {
  Driver driver(1);
  const std::atomic<bool> stop{true};
  auto lock = driver.lock();
  driver.stop_on(&stop);
  CHECK(!driver.wait(lock, WaitCause::kReads, idle, [] { return false; }));
}

TEST_CASE("driver: a wait counts under its cause while a worker has nothing to do") {
  Driver driver(1);
  auto lock = driver.lock();
  for (const WaitCause cause : {WaitCause::kReads, WaitCause::kWrites, WaitCause::kWorkers}) {
    bool loaded = false;
    std::atomic<bool> waits{false};
    // Its completion takes the lock, which the driving thread gives up when it sleeps.
    std::thread completer([&, done = driver.expect([&] { loaded = true; })] {
      while (!waits) std::this_thread::yield();
      done(nullptr);
    });
    CHECK(driver.wait(
        lock, cause, [&] { waits = true; }, [&] { return loaded; }));
    completer.join();
    lock.unlock();
    for (const WaitCause other : {WaitCause::kReads, WaitCause::kWrites, WaitCause::kWorkers}) {
      CHECK((driver.spent().take_wait(other) > 0) == (other == cause));
    }
    CHECK(driver.spent().take_wait(cause) == 0);
    lock.lock();
  }
}

TEST_CASE("driver: no wait counts while every worker has a task") {
  Driver driver(1);
  auto lock = driver.lock();
  bool loaded = false;
  std::atomic<bool> waits{false};
  driver.run(
      [&] {
        while (!waits) std::this_thread::yield();
      },
      [&] { loaded = true; });
  CHECK(driver.wait(
      lock, WaitCause::kReads, [&] { waits = true; }, [&] { return loaded; }));
  lock.unlock();
  CHECK(driver.spent().take_wait(WaitCause::kReads) == 0);
  CHECK(driver.spent().take_compute() > 0);
}

TEST_CASE("driver: ends of tasks that leave the driving thread nothing to do don't wake it") {
  constexpr int kTasks = 16, kMayAdvance = 5;
  constexpr std::chrono::milliseconds kPoll{50};  // it looks anyway as often
  Driver driver(1);
  auto lock = driver.lock();
  int done = 0, looks = 0;
  for (int i = 0; i < kTasks; ++i) {
    driver.run([] { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }, [&] { ++done; });
  }
  const auto begin = std::chrono::steady_clock::now();
  CHECK(driver.wait(
      lock, WaitCause::kWorkers, [&] { ++looks; }, [&] { return done == kTasks; },
      [&] { return done == kMayAdvance; }));
  const auto polls = (std::chrono::steady_clock::now() - begin) / kPoll;
  // Before it sleeps, where there is something to advance, and when all are done.
  CHECK(looks <= 3 + polls);
}

TEST_CASE("driver: waiting for room lasts while all tasks that there may be are handed out") {
  Driver driver(2);
  auto lock = driver.lock();
  for (int i = 0; i < 100; ++i) driver.run(idle, idle);
  CHECK(driver.wait_for_room(lock, idle));
  CHECK(driver.tasks() < tasks_at_once(2));
}

TEST_CASE("driver: tasks of one that goes first don't wait for as many of another") {
  constexpr int kTasks = 60;
  Driver usual(2), first(2, 1, machine_clock(), Precedence::kFirst);
  std::atomic<bool> begins{false};
  std::atomic<int> of_usual{0}, of_first{0}, before_last{kTasks};
  const auto take_time = [] { std::this_thread::sleep_for(std::chrono::microseconds(200)); };
  for (int i = 0; i < 2; ++i) {
    usual.run(
        [&] {
          while (!begins) std::this_thread::yield();
        },
        idle);
  }
  for (int i = 0; i < kTasks; ++i) {
    usual.run([&] { ++of_usual, take_time(); }, idle);
    first.run(
        [&] {
          if (++of_first == kTasks) before_last = of_usual.load();
          take_time();
        },
        idle);
  }
  begins = true;
  for (Driver* const driver : {&first, &usual}) {
    auto lock = driver->lock();
    CHECK(driver->wait(lock, WaitCause::kWorkers, idle, [&] { return driver->tasks() == 0; }));
  }
  CHECK(of_usual == kTasks);
  CHECK(before_last < kTasks / 2);
}

}  // namespace ooc
