// Several devices: the bits of one, and exactly the bytes that the plan says.
#include <catch2/catch.hpp>

#include "kernels/device/virtual_device.h"
#include "storage/base/errors.h"
#include "tests/sched/run/executor_harness.h"

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
  }
}

}  // namespace

TEST_CASE("devices: the bits of one, whatever their number, memory and strategy") {
  Harness harness;
  const Result expected = harness.run({.workers = 2});
  for (const std::int64_t devices : {2, 3, 4, 8}) {
    for (const Strategy strategy : {Strategy::kNone, Strategy::kLru, Strategy::kLp}) {
      for (const auto& [device_kib, host_kib] :
           {std::pair{0, 0}, std::pair{1200, 0}, std::pair{1024, 700}}) {
        INFO(devices << " devices, strategy " << static_cast<int>(strategy) << ", " << device_kib
                     << " KiB each, host " << host_kib << " KiB");
        const PlanOptions options = options_of(devices, strategy, device_kib, host_kib);
        const Plan plan = harness.plan(options);
        REQUIRE(std::ssize(plan.devices) == devices);
        CHECK(plan.devices.front().own.first == 0);
        CHECK(plan.devices.back().own.end == harness.dataset().manifest().edges.block_count());
        Devices machine(plan);
        const Result result =
            harness.open(machine.first(), plan, options.workers, machine.others())->run(3);
        check_same(result, expected);
        check_bytes(result);
        check_link_bytes(result);
      }
    }
  }
}

}  // namespace ooc::test
