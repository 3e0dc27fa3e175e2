// Several devices: the bits of one, and exactly the bytes that the plan says.
#include <catch2/catch.hpp>

#include "kernels/device/virtual_device.h"
#include "sched/plan/passes/edge_table.h"
#include "storage/base/errors.h"
#include "tests/sched/run/executor_harness.h"
#include "tests/support/cases.h"

namespace ooc::test {
namespace {

// As many virtual devices as a plan has.
class Devices {
 public:
  explicit Devices(const Plan& plan) {
    for (const DevicePlan& device : plan.devices) {
      devices_.push_back(make_virtual_cpu_device(
          "cpu:" + std::to_string(devices_.size()),
          round_up(device.arena_bytes, std::int64_t{4096}) + device.reduction_bytes + (64 << 10)));
    }
  }
  Backend& first() { return *devices_.front(); }
  std::vector<Backend*> others() {
    std::vector<Backend*> others;
    for (std::size_t i = 1; i < devices_.size(); ++i) others.push_back(devices_[i].get());
    return others;
  }

 private:
  std::vector<std::unique_ptr<Backend>> devices_;
};

PlanOptions options_of(std::int64_t devices, Strategy strategy, std::int64_t device_kib,
                       std::int64_t host_kib) {
  PlanOptions options;
  options.strategy = strategy;
  options.device = true;
  options.devices = devices;
  options.device_memory_bytes = device_kib << 10;
  options.memory_bytes = host_kib << 10;
  options.workers = 2;
  return options;
}

void check_link_bytes(const Result& result) {
  for (std::size_t i = 1; i < result.runs.size(); ++i) {
    CHECK(result.runs[i].bytes_to_device == result.plan.bytes_to_device);
    CHECK(result.runs[i].bytes_from_device == result.plan.bytes_from_device);
    CHECK(result.runs[i].bytes_between_devices == result.plan.bytes_between_devices);
  }
}

Result run_on(Harness& harness, const Plan& plan, std::int64_t runs) {
  Devices machine(plan);
  return harness.open(machine.first(), plan, 2, machine.others())->run(static_cast<int>(runs));
}

// Of edge chunks, of a pass over all destination ranges.
std::int64_t edge_bytes(const Plan& plan, const GraphCounts& graph, const Pass& pass) {
  std::int64_t bytes = 0;
  for (const DevicePlan& device : plan.devices) {
    bytes += EdgeTable(graph, device.own)
                 .sweep_bytes(pass.propagation.direction, pass.dst_range_blocks, 0);
  }
  return bytes;
}

}  // namespace

TEST_CASE("devices: the bits of one, whatever their number, memory and strategy") {
  Harness harness;
  const Result expected = harness.run({.workers = 2});
  Cases cases(6);
  for (const std::int64_t devices : {2, 3, 4, 8}) {
    for (const Strategy strategy : {Strategy::kNone, Strategy::kLru, Strategy::kLp}) {
      for (const auto& [device_kib, host_kib] :
           {std::pair{0, 0}, std::pair{1200, 0}, std::pair{1024, 700}}) {
        if (!cases.next()) continue;
        PlanOptions options = options_of(devices, strategy, device_kib, host_kib);
        options.ring_loaders = host_kib == 0 && strategy == Strategy::kNone ? 0 : 1;
        INFO(devices << " devices, strategy " << static_cast<int>(strategy) << ", " << device_kib
                     << " KiB each, host " << host_kib << " KiB, " << options.ring_loaders
                     << " loaders");
        const Plan plan = harness.plan(options);
        REQUIRE(std::ssize(plan.devices) == devices);
        CHECK(plan.devices.front().own.first == 0);
        CHECK(plan.devices.back().own.end == harness.dataset().manifest().edges.block_count());
        const Result result = run_on(harness, plan, 3);
        check_same(result, expected);
        CHECK((plan.bytes_between_devices > 0) == (options.ring_loaders > 0));
        check_bytes(result);
        check_link_bytes(result);
      }
    }
  }
}

TEST_CASE("devices: in a ring the host link carries what is streamed once for all of them") {
  Harness harness;
  const GraphCounts graph = counts_of(harness.dataset());
  const std::int64_t streamed = kVertices * kCols * 4;  // a, and then c
  Cases cases(4);
  for (const std::int64_t devices : {1, 2, 4, 8}) {
    for (const std::int64_t blocks : {1, 3, 24}) {
      for (const std::int64_t loaders : {0, 1}) {
        if (!cases.next()) continue;
        INFO(devices << " devices, " << blocks << " blocks a range, " << loaders << " loaders");
        PlanOptions options = options_of(devices, Strategy::kNone, 0, 0);
        options.partition = DevicePartition::kEqualVertices;
        options.dst_range_blocks = blocks;
        options.ring_loaders = loaders;
        const Plan plan = harness.plan(options);
        std::int64_t dst_ranges = 0;
        for (const DevicePlan& device : plan.devices) {
          dst_ranges += ceil_div(device.own.count(), blocks);
        }
        CHECK(dst_ranges == std::max<std::int64_t>(24 / blocks, devices));
        const Result result = run_on(harness, plan, 2);
        const std::int64_t sweeps = loaders > 0 ? ceil_div(dst_ranges, devices) : dst_ranges;
        const Pass& in = plan.sections[0].passes[1];  // reads nothing else
        REQUIRE(in.kind == PassKind::kPropagate);
        const RunCounters& moved = result.passes[1].counters;
        CHECK(moved.bytes_to_device == sweeps * streamed + edge_bytes(plan, graph, in));
        const bool ring = loaders > 0 && devices > 1;
        CHECK(moved.bytes_between_devices == (ring ? sweeps * (devices - 1) * streamed : 0));
      }
    }
  }
}

TEST_CASE("devices: with several loaders sums differ in their order alone, the same in each run") {
  Harness harness;
  const Reference expected(harness.spec());
  for (const auto& [devices, loaders] : {std::pair{2, 2}, std::pair{4, 2}, std::pair{8, 4}}) {
    for (const auto& [device_kib, spans] : {std::pair{0, 0}, std::pair{1200, 0}, std::pair{0, 5}}) {
      INFO(devices << " devices, " << loaders << " loaders, " << device_kib
                   << " KiB each, windows of " << spans << " spans");
      PlanOptions options = options_of(devices, Strategy::kLp, device_kib, 0);
      options.ring_loaders = loaders;
      options.span_group = spans;
      const Plan plan = harness.plan(options);
      const Result result = run_on(harness, plan, 3);
      check_close(result.c, expected.c);
      check_close(result.d, expected.d);
      check_bytes(result);
      check_link_bytes(result);
      check_same(run_on(harness, plan, 1), result);
    }
  }
}

TEST_CASE("devices: stopped or failing on one of them, nothing waits, and the next run is right") {
  Harness harness;
  const Result expected = harness.run({.workers = 2});
  for (const std::int64_t loaders : {0, 1}) {
    PlanOptions options = options_of(3, Strategy::kNone, 1200, 700);
    options.ring_loaders = loaders;
    const Plan plan = harness.plan(options);
    Devices machine(plan);
    const auto session = harness.open(machine.first(), plan, 2, machine.others());
    std::int64_t stopped = 0;
    for (const std::int64_t read : {1, 3, 17, 40}) stopped += stops(*session, harness.io(), read);
    CHECK(stopped > 0);
    for (const std::int64_t read : {2, 9, 31}) {
      harness.io().faults.first_failing_read = harness.io().reads + read;
      CHECK_THROWS_AS(session->run(1), IoError);
      harness.io().faults = {};
    }
    session->executor.take_counters();  // of what was given up
    const Result result = session->run(2);
    check_same(result, expected);
    for (const RunCounters& run : result.runs) {
      CHECK(run.bytes_to_device == plan.bytes_to_device);
    }
  }
}

}  // namespace ooc::test
