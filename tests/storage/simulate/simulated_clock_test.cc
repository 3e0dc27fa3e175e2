// A clock that jumps from event to event, and the threads that wait by it.
#include "storage/simulate/simulated_clock.h"

#include <catch2/catch.hpp>
#include <string>

#include "storage/simulate/simulated_block_io.h"

namespace ooc::test {
namespace {

using namespace std::chrono_literals;

double seconds(const SimulatedClock& clock) {
  return std::chrono::duration<double>(clock.now() - RunClock::Time{}).count();
}

// What some threads do, each with steps of its own length, on a clock.
std::string run_threads(SimulatedClock& clock) {
  std::mutex mutex;
  std::condition_variable changed;
  std::string done;
  std::vector<std::thread> threads;
  for (const auto& [name, takes] : {std::pair{'a', 3s}, std::pair{'b', 2s}, std::pair{'c', 2s}}) {
    threads.push_back(clock.start([&, name = name, takes = takes] {
      for (int step = 0; step < 3; ++step) {
        std::unique_lock lock(mutex);
        bool there = false;
        clock.after(clock.varied(takes), [&] {
          const std::lock_guard own(mutex);
          there = true;
          clock.notify(changed);
        });
        while (!there) clock.wait(lock, changed);
        done += name;
      }
    }));
  }
  for (std::thread& thread : threads) clock.join(thread);
  return done;
}

}  // namespace

TEST_CASE("simulated clock: it takes the time of events, and no other") {
  SimulatedClock clock;
  CHECK(run_threads(clock) == "bcabcabca");
  CHECK(seconds(clock) == 9);
  CHECK_FALSE(clock.stands_still());
}

TEST_CASE("simulated clock: a seed gives another order, the same each time") {
  std::set<std::string> orders;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SimulatedClock first(seed), second(seed);
    const std::string order = run_threads(first);
    CHECK(run_threads(second) == order);
    CHECK(first.now() == second.now());
    orders.insert(order);
  }
  CHECK(orders.size() > 15);
}

TEST_CASE("simulated clock: who waits for so long goes on then, or when it is told to") {
  SimulatedClock clock;
  std::mutex mutex;
  std::condition_variable changed;
  std::unique_lock lock(mutex);
  clock.after(7s, [&] { clock.notify(changed); });
  clock.wait_for(lock, changed, 5s);
  CHECK(seconds(clock) == 5);
  clock.wait_for(lock, changed, 5s);
  CHECK(seconds(clock) == 7);
}

TEST_CASE("simulated clock: it says when nothing can happen any more") {
  SimulatedClock clock;
  std::mutex mutex;
  std::condition_variable changed, never;
  int waits = 0;
  std::thread other = clock.start([&] {
    std::unique_lock lock(mutex);
    while (!clock.stands_still()) clock.wait(lock, never);
  });
  {
    std::unique_lock lock(mutex);
    for (; !clock.stands_still(); ++waits) clock.wait_for(lock, changed, 1s);
  }
  clock.join(other);
  CHECK(waits < 10);
}

TEST_CASE("simulated storage: reads and writes share what both have together") {
  SimulatedClock clock;
  SimulatedBlockIo io(clock, {100, 50, 100});
  const auto file = io.create_temporary("", 1000);
  std::mutex mutex;
  std::condition_variable changed;
  int left = 3;
  std::vector<double> ends;
  for (const auto kind :
       {BlockRequest::Kind::kRead, BlockRequest::Kind::kWrite, BlockRequest::Kind::kRead}) {
    io.submit({kind, file.get(), 0, nullptr, 100, [&](const std::exception_ptr&) {
                 ends.push_back(seconds(clock));
                 --left;
                 clock.notify(changed);
               }});
  }
  std::unique_lock lock(mutex);
  while (left > 0) clock.wait(lock, changed);
  CHECK(ends == std::vector<double>{1, 2, 3});
}

}  // namespace ooc::test
