// Kernels that go over arrays, against the CPU's.
#include <catch2/catch.hpp>
#include <random>
#include <vector>

#include "kernels/device/accumulate_cuda.h"
#include "kernels/device/cpu_backend.h"
#include "kernels/device/device_cuda.h"
#include "kernels/optimizer/optimizer_cuda.h"
#include "tests/support/cuda/emulated_machine.h"

namespace ooc::test {
namespace {

using cuda::Device;

// Numbers on the device and on the host.
template <class T>
struct Numbers {
  std::vector<T> host;
  std::unique_ptr<DeviceBuffer> there;

  Numbers(Device& device, std::int64_t count, std::uint64_t seed, double least = -1) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> draw(least, 1);
    for (std::int64_t i = 0; i < count; ++i) host.push_back(static_cast<T>(draw(random)));
    there = device.allocate(host.size() * sizeof(T));
    Queue& queue = device.queue(QueueKind::kCompute);
    queue.copy(there->data(), host.data(), host.size() * sizeof(T));
    queue.wait(queue.record());
  }
  // The largest difference, relative to numbers of about 1.
  double difference(Device& device) const {
    std::vector<T> back(host.size());
    Queue& queue = device.queue(QueueKind::kCompute);
    queue.copy(back.data(), there->data(), back.size() * sizeof(T));
    queue.wait(queue.record());
    double worst = 0;
    for (std::size_t i = 0; i < back.size(); ++i) {
      const double error = std::abs(static_cast<double>(back[i]) - static_cast<double>(host[i]));
      worst = error <= worst ? worst : error;  // a NaN stays
    }
    return worst;
  }
};

template <class T>
constexpr DType kType = sizeof(T) == 4 ? DType::kF32 : DType::kF64;

template <class T>
void check_accumulate(Device& device, std::int64_t count) {
  const auto cpu = make_cpu_backend();
  Numbers<T> to(device, count, 1);
  const Numbers<T> from(device, count, 2);
  cuda::accumulate(kType<T>, count, to.there->data(), from.there->data(),
                   device.queue(QueueKind::kCompute).stream());
  cpu->accumulate(kType<T>, count, to.host.data(), from.host.data());
  CHECK(to.difference(device) == 0);
}

template <class T>
void check_optimizer(Device& device, OptimizerKind kind, std::int64_t count) {
  const auto cpu = make_cpu_backend();
  Numbers<T> parameter(device, count, 1), m(device, count, 3), v(device, count, 4, 0);
  const Numbers<T> gradient(device, count, 2);
  OptimizerStep step{.kind = kind, .dtype = kType<T>, .count = count};
  step.weight_decay = 0.1;
  step.momentum = 0.9;
  for (step.step = 1; step.step <= 3; ++step.step) {
    step.parameter = parameter.there->data();
    step.gradient = gradient.there->data();
    step.m = m.there->data();
    step.v = v.there->data();
    cuda::optimize(step, device.queue(QueueKind::kCompute).stream());
    step.parameter = parameter.host.data();
    step.gradient = gradient.host.data();
    step.m = m.host.data();
    step.v = v.host.data();
    cpu->optimize(step);
  }
  const double tolerance = sizeof(T) == 4 ? 1e-6 : 1e-14;
  CHECK(parameter.difference(device) <= tolerance);
  CHECK(m.difference(device) <= tolerance);
  CHECK(v.difference(device) <= tolerance);
}

}  // namespace

TEST_CASE("cuda kernels: partial sums are merged as the CPU does, to the bit") {
  for_each_order(2, {}, [] {
    Device device(0, 0);
    for (const std::int64_t count : {0, 1, 257, 10'000}) {
      check_accumulate<float>(device, count);
      check_accumulate<double>(device, count);
    }
  });
}

TEST_CASE("cuda kernels: optimisers step as the CPU's") {
  for_each_order(1, {}, [] {
    Device device(0, 0);
    for (const auto kind : {OptimizerKind::kAdam, OptimizerKind::kAdamW, OptimizerKind::kSgd}) {
      for (const std::int64_t count : {0, 1, 3001}) {
        check_optimizer<float>(device, kind, count);
        check_optimizer<double>(device, kind, count);
      }
    }
  });
}

}  // namespace ooc::test
