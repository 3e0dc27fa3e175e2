// The executor on an emulated GPU, whose work is late: the same bits by any plan and in any order,
// and nothing left of a run that was given up.
#include <catch2/catch.hpp>
#include <chrono>

#include "kernels/device/cuda_backend.h"
#include "storage/base/errors.h"
#include "tests/sched/run/executor_harness.h"
#include "tests/sched/run/host_plan.h"
#include "tests/support/cuda/emulated_machine.h"

namespace ooc::test {
namespace {

using cuda_emulation::Order;

// Of edge programs a GPU has plain sums alone: d = sum over out-edges of the neighbour's c.
TwoHops plain_sums() {
  TwoHops hops;
  Propagation& out = *hops.program.stages[2].propagation;
  out.inputs.resize(1);
  out.steps.clear();
  out.folds = {{Fold::kSum, {out.inputs[0].edge}, {hops.d}}};
  return hops;
}

std::unique_ptr<Backend> gpu(Order order, std::uint64_t seed) {
  cuda_emulation::reset({}, order, seed);
  return make_cuda_backend(0, 0);
}

TinyDataset few_edges() {
  TinyDataset spec = small_blocks();
  spec.vertices = 800;
  spec.edges = random_edges(spec.vertices, 2500, 5);
  return spec;
}

class Gpu {
 public:
  Gpu() {
    const auto device = gpu(Order::kEager, 1);
    expected_ = harness.open(*device, plan({}, {}), 2)->run(1);
  }

  Harness harness{few_edges(), plain_sums()};
  const Result& expected() const { return expected_; }
  // With a host tier by hand, in many small launches.
  Plan plan(PlanOptions options, const HostShape& shape) {
    options.workers = 2;
    options.compute = kCudaShape;
    options.compute.lanes = 2;
    options.compute.most_group_rows = 64;
    return HostPlanner(harness.plan(options), counts_of(harness.dataset()), shape).make();
  }

 private:
  Result expected_;
};

}  // namespace

TEST_CASE("cuda executor: any plan gives the same bits, however late a GPU's work is") {
  Gpu on;
  const Result cpu = on.harness.run({.workers = 1});
  check_close(on.expected().c, Rows(cpu.c.begin(), cpu.c.end()));
  check_close(on.expected().d, Rows(cpu.d.begin(), cpu.d.end()));
  // Rows wait for the staging slot before they leave the device. A first run finds no rows of
  // another where its own are to be.
  on.harness.io().faults.write_takes = std::chrono::microseconds(1000);
  std::uint64_t seed = 0;
  for (const Strategy strategy : {Strategy::kNone, Strategy::kLru, Strategy::kLp}) {
    for (const std::int64_t span_group : {0, 1}) {
      for (const std::int64_t dst_range : {0, 4}) {
        ++seed;
        INFO("strategy " << static_cast<int>(strategy) << ", spans " << span_group << ", blocks "
                         << dst_range << ", seed " << seed);
        const Plan planned = on.plan({.strategy = strategy,
                                      .memory_bytes = 200 << 10,
                                      .dst_range_blocks = dst_range,
                                      .span_group = span_group,
                                      .dst_ranges_at_once = dst_range > 0 ? 2 : 0},
                                     {.slots = 1});
        const auto device = gpu(seed % 2 == 0 ? Order::kLazy : Order::kShuffled, seed);
        check_same(on.harness.open(*device, planned, 2)->run(1), on.expected());
      }
    }
  }
}

TEST_CASE("cuda executor: a run that is stopped leaves nothing under way") {
  Gpu on;
  const Plan planned = on.plan({.strategy = Strategy::kNone, .dst_range_blocks = 4}, {.rows = 0.5});
  for (const Order order : {Order::kLazy, Order::kShuffled}) {
    const auto device = gpu(order, 3);
    const auto session = on.harness.open(*device, planned, 2);
    for (const std::int64_t read : {3, 17, 30}) stops(*session, on.harness.io(), read);
    check_same(session->run(1), on.expected());
  }
}

TEST_CASE("cuda executor: whichever call fails, the next run is right", "[emulation]") {
  constexpr int kUnknown = 999;  // cudaErrorUnknown
  Gpu on;
  const Plan planned =
      on.plan({.strategy = Strategy::kNone, .memory_bytes = 200 << 10, .dst_range_blocks = 4}, {});
  const auto device = gpu(Order::kLazy, 3);
  const auto session = on.harness.open(*device, planned, 2);
  session->run(1);
  const std::int64_t before = cuda_emulation::counters().calls;
  session->run(1);
  const auto calls = static_cast<int>(cuda_emulation::counters().calls - before);
  int failed = 0;
  for (int call = 3; call < calls; call += calls / 80) {
    cuda_emulation::fail_after(call, kUnknown);
    try {
      session->run(1);
    } catch (const DeviceError&) {
      ++failed;
    }
    cuda_emulation::fail_after(-1, 0);
    check_same(session->run(1), on.expected());
  }
  CHECK(failed > 5);
}

}  // namespace ooc::test
