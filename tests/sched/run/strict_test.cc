// The executor on the strict device: the CPU's bits, whatever is late.
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <stdexcept>

#include "kernels/device/cpu_backend.h"
#include "tests/sched/run/executor_harness.h"
#include "tests/sched/run/host_plan.h"
#include "tests/support/cases.h"
#include "tests/support/strict_device.h"

namespace ooc::test {
namespace {

// Whether `work` ends a process of its own by touching what isn't there.
template <class Work>
bool is_stopped(Work&& work) {
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGSEGV, SIG_DFL);
    work();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) == SIGSEGV : WEXITSTATUS(status) != 0;
}

}  // namespace

TEST_CASE("strict device: the host that touches its memory is stopped") {
  const auto device = make_strict_device(1, 0);
  const auto buffer = device->allocate(4096);
  volatile std::byte* data = buffer->data();
  CHECK(is_stopped([&] {
    std::byte read = data[40];
    (void)read;
  }));
  CHECK(is_stopped([&] { data[0] = std::byte{1}; }));
  CHECK(!is_stopped([] {}));
}

// A race that is meant.
#if !defined(__SANITIZE_THREAD__)
TEST_CASE("strict device: a copy that nobody waits for is seen to be late") {
  const auto device = make_strict_device(1, 0);
  const auto buffer = device->allocate(4096);
  Queue& in = device->queue(QueueKind::kIn);
  Queue& out = device->queue(QueueKind::kOut);
  int late = 0;
  for (int round = 1; round <= 200; ++round) {
    const std::vector<std::byte> host(4096, static_cast<std::byte>(round));
    std::vector<std::byte> back(4096);
    in.copy(buffer->data(), host.data(), host.size());
    out.copy(back.data(), buffer->data(), back.size());
    out.wait(out.record());
    in.wait(in.record());
    late += back != host;
  }
  CHECK(late > 5);
}

#endif

TEST_CASE("strict device: the CPU's bits by every strategy, in any memory, by ten seeds") {
  Harness harness;
  const GraphCounts counts = counts_of(harness.dataset());
  const Result expected = harness.run({.workers = 1});
  Cases cases(6);
  std::uint64_t seed = 0;
  for (const Strategy strategy : {Strategy::kNone, Strategy::kLru, Strategy::kDp, Strategy::kLp}) {
    for (const std::int64_t memory : {0, 1 << 20, 800 << 10}) {
      for (const double share : {0.0, 0.5, 1.0}) {
        for (const std::int64_t dst_range : {0, 4}) {
          ++seed;
          if (!cases.next()) continue;
          INFO("strategy " << static_cast<int>(strategy) << ", memory " << memory << ", share "
                           << share << ", blocks " << dst_range << ", seed " << seed % 10);
          const PlanOptions options{.strategy = strategy,
                                    .memory_bytes = memory,
                                    .workers = 2,
                                    .dst_range_blocks = dst_range,
                                    .dst_ranges_at_once = dst_range > 0 ? 2 : 0};
          const Plan planned =
              HostPlanner(harness.plan(options), counts, {.rows = share, .edges = share}).make();
          const auto device =
              make_strict_device(seed % 10, planned.devices[0].arena_bytes + (64 << 10));
          check_same(harness.open(*device, planned, 2)->run(2), expected);
        }
      }
    }
  }
}

TEST_CASE("strict device: a run that is stopped leaves nothing under way") {
  Harness harness;
  const Result expected = harness.run({.workers = 1});
  const PlanOptions options{.strategy = Strategy::kNone, .workers = 2, .dst_range_blocks = 4};
  const Plan planned =
      HostPlanner(harness.plan(options), counts_of(harness.dataset()), {.rows = 0.5}).make();
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const auto device = make_strict_device(seed, 0);
    const auto session = harness.open(*device, planned, 2);
    for (const std::int64_t read : {3, 17, 30}) stops(*session, harness.io(), read);
    check_same(session->run(1), expected);
  }
}

// What was launched before may come when its memory has gone, unless it is waited for.
TEST_CASE("strict device: a kernel that can't be launched ends the run, and nothing is under way") {
  Harness harness;
  const Plan planned =
      HostPlanner(harness.plan({.workers = 2}), counts_of(harness.dataset()), {.rows = 0.5}).make();
  for (const std::int64_t launch : {2, 9, 20}) {
    const auto device = make_strict_device(kAlwaysLate, 0, launch);
    CHECK_THROWS_WITH(harness.open(*device, planned, 2)->run(1), "a kernel can't be launched");
  }
}

TEST_CASE("strict device: an operator that fails ends the run, and leaves nothing that fails") {
  register_cpu_row_kernel(
      "test_fails", [](const OperatorCall&) { throw std::runtime_error("no such number"); },
      nullptr);
  TwoHops hops;
  hops.program.stages[0].steps[0].op = "test_fails";
  Harness harness(small_blocks(), hops);
  const Plan planned =
      HostPlanner(harness.plan({.workers = 2}), counts_of(harness.dataset()), {.rows = 0.5}).make();
  const auto device = make_strict_device(3, 0);
  const auto session = harness.open(*device, planned, 2);
  for (int turn = 0; turn < 2; ++turn) {
    CHECK_THROWS_WITH(session->run(1), "no such number");
  }
}

}  // namespace ooc::test
