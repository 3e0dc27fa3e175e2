// The executor on devices that take their time: the plan's bytes, the time that links and kernels
// say, and no schedule in which devices wait for each other for ever.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <optional>

#include "kernels/device/simulated_device.h"
#include "sched/run/simulated_graph.h"
#include "storage/base/errors.h"
#include "storage/simulate/simulated_block_io.h"
#include "tests/sched/run/executor_harness.h"
#include "tests/support/cases.h"

namespace ooc::test {
namespace {

PlanOptions options_of(std::int64_t devices, std::int64_t loaders, std::int64_t device_kib,
                       std::int64_t host_kib) {
  PlanOptions options;
  options.strategy = Strategy::kNone;
  options.device = true;
  options.devices = devices;
  options.ring_loaders = loaders;
  options.device_memory_bytes = device_kib << 10;
  options.memory_bytes = host_kib << 10;
  options.compute.runs_inline = false;
  return options;
}

struct Simulated {
  RunCounters counters;
  double seconds = 0;
  double compute_seconds = 0;
};

// The last of two runs.
Simulated simulate(const Harness& harness, const Plan& plan, double link_rate,
                   std::optional<std::uint64_t> seed = std::nullopt) {
  SimulatedClock clock(seed);
  SimulatedBlockIo io(clock, {1e9, 1e9, 1e9});
  SimulatedDeviceOptions options{.name = "simulated"};
  options.host_accessible = !plan.host;
  options.shape.runs_inline = !plan.host;
  std::vector<std::unique_ptr<Backend>> devices;
  for (std::size_t i = 0; i < plan.devices.size(); ++i) {
    options.links = links_at(static_cast<std::int64_t>(link_rate));
    options.links.peer = {std::make_shared<SharedLink>(link_rate)};
    devices.push_back(make_simulated_device(clock, options));
  }
  const SimulatedGraph graph(counts_of(harness.dataset()), plan, io);
  RunResources resources{*devices.front(), io, graph.edges(), "", 1};
  for (std::size_t i = 1; i < devices.size(); ++i) resources.others.push_back(devices[i].get());
  resources.clock = &clock;
  const TwoHops hops;
  Executor executor(resources, {&hops.program}, plan, graph.inputs());
  Simulated simulated;
  for (int run = 0; run < 2; ++run) {
    if (!executor.run(0, {}, nullptr)) FAIL("it was stopped");
    simulated.counters = executor.take_counters();
  }
  for (const PassReport& pass : executor.reports(0)) simulated.seconds += pass.seconds;
  simulated.compute_seconds = simulated.counters.compute_seconds;
  return simulated;
}

}  // namespace

TEST_CASE("simulation: it moves the plan's bytes") {
  Harness harness;
  for (const auto& [devices, loaders] :
       {std::pair{1, 0}, std::pair{3, 1}, std::pair{4, 2}, std::pair{8, 0}}) {
    for (const auto& [device_kib, host_kib] : {std::pair{0, 0}, std::pair{1024, 900}}) {
      INFO(devices << " devices, " << loaders << " loaders, " << device_kib << " KiB each");
      const Plan plan = harness.plan(options_of(devices, loaders, device_kib, host_kib));
      const Simulated simulated = simulate(harness, plan, 1e9);
      CHECK(simulated.counters.bytes_read == plan.bytes_read);
      CHECK(simulated.counters.bytes_written == plan.bytes_written);
      CHECK(simulated.counters.bytes_to_device == plan.bytes_to_device);
      CHECK(simulated.counters.bytes_from_device == plan.bytes_from_device);
      CHECK(simulated.counters.bytes_between_devices == plan.bytes_between_devices);
    }
  }
}

TEST_CASE("simulation: devices share what one computes") {
  Harness harness;
  const Plan one = harness.plan(options_of(1, 0, 0, 0));
  const Simulated alone = simulate(harness, one, 1e9);
  for (const std::int64_t devices : {2, 4}) {
    const Plan plan = harness.plan(options_of(devices, 1, 0, 0));
    CHECK(simulate(harness, plan, 1e9).compute_seconds ==
          Approx(alone.compute_seconds).epsilon(0.02));
    for (std::size_t i = 0; i < plan.sections[0].passes.size(); ++i) {
      const double share = 1 / static_cast<double>(devices);
      CHECK(plan.sections[0].passes[i].compute_seconds ==
            Approx(share * one.sections[0].passes[i].compute_seconds).epsilon(0.2));
    }
  }
}

TEST_CASE("simulation: it takes what links take, or kernels, or both where they can't overlap") {
  Harness harness;
  PlanOptions options = options_of(1, 0, 0, 0);
  Plan plan = harness.plan(options);
  const auto set_compute = [&](double seconds) {
    for (Pass& pass : plan.sections[0].passes) {
      pass.edge_seconds = pass.kind == PassKind::kPropagate ? seconds : 0;
      pass.row_seconds = seconds;
    }
  };
  const double rate = 1e6;
  const double link = static_cast<double>(plan.bytes_to_device) / rate;
  set_compute(0);
  const double apart = simulate(harness, plan, rate).seconds;
  CHECK(apart > link);
  CHECK(apart < 1.1 * (link + static_cast<double>(plan.bytes_from_device) / rate));
  set_compute(100 * link);
  const Simulated slow = simulate(harness, plan, rate);
  CHECK(slow.compute_seconds == Approx(5 * 100 * link));
  CHECK(slow.seconds > slow.compute_seconds);
  CHECK(slow.seconds < slow.compute_seconds + 2 * link);
}

TEST_CASE("simulation: no schedule brings devices to a stand") {
  Harness harness;
  const int seeds = std::getenv("OOC_NIGHTLY") != nullptr ? 840 : 8;  // for each of 12 plans
  std::uint64_t seed = 0;
  for (const auto& [devices, loaders] : {std::pair{2, 1}, std::pair{2, 2}, std::pair{3, 1},
                                         std::pair{4, 2}, std::pair{8, 1}, std::pair{8, 4}}) {
    for (const auto& [device_kib, host_kib] : {std::pair{1024, 0}, std::pair{1024, 900}}) {
      const Plan plan = harness.plan(options_of(devices, loaders, device_kib, host_kib));
      INFO(devices << " devices, " << loaders << " loaders, host " << host_kib << " KiB");
      Cases cases(4);
      for (int i = 0; i < seeds; ++i, ++seed) {
        if (!cases.next()) continue;
        const Simulated simulated = simulate(harness, plan, 1e9, seed);
        CHECK(simulated.counters.bytes_to_device == plan.bytes_to_device);
      }
    }
  }
}

TEST_CASE("simulation: a stand is found") {
  Harness harness;
  PlanOptions options = options_of(2, 1, 0, 0);
  options.span_group = 4;
  Plan plan = harness.plan(options);
  for (DevicePlan& device : plan.devices) {
    for (UseMemory& use : device.passes[1].uses) use.slots = std::min<std::int64_t>(use.slots, 2);
  }
  CHECK_THROWS_WITH(simulate(harness, plan, 1e9), Catch::Contains("every device waits"));
}

}  // namespace ooc::test
