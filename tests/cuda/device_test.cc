#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "kernels/cuda/argument_ring_cuda.h"
#include "kernels/device/device_cuda.h"
#include "storage/base/errors.h"
#include "tests/support/cuda/emulated_machine.h"

namespace ooc::test {
namespace {

using cuda::Device;

std::vector<std::byte> read_back(Device& device, const DeviceBuffer& buffer) {
  std::vector<std::byte> host(buffer.bytes(), std::byte{0x55});
  Queue& queue = device.queue(QueueKind::kCompute);
  queue.copy(host.data(), buffer.data(), host.size());
  queue.wait(queue.record());
  return host;
}

// Nothing is under way when it goes, whatever was thrown.
struct AllDone {
  Device& device;
  ~AllDone() {
    for (const auto kind : {QueueKind::kIn, QueueKind::kCompute, QueueKind::kOut}) {
      for (int attempt = 0; attempt < 2; ++attempt) {  // one call fails, at most
        try {
          Queue& queue = device.queue(kind);
          queue.wait(queue.record());
          break;
        } catch (const DeviceError&) {
        }
      }
    }
  }
};

// In through one queue, on by the next, out through the third; true if it came back as it went.
bool goes_through(Device& device, int rounds) {
  constexpr std::size_t kBytes = 8192;
  const auto host = device.allocate_pinned(kBytes, "test");
  const auto back = device.allocate_pinned(kBytes, "test");
  const auto first = device.allocate(kBytes), second = device.allocate(kBytes);
  const AllDone all_done{device};
  Queue& in = device.queue(QueueKind::kIn);
  Queue& compute = device.queue(QueueKind::kCompute);
  Queue& out = device.queue(QueueKind::kOut);
  bool right = true;
  Ticket zeroed;
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < kBytes; ++i) {
      host->data()[i] = static_cast<std::byte>(i * 7 + static_cast<std::size_t>(round));
    }
    in.follow(zeroed);
    in.copy(first->data(), host->data(), kBytes);
    compute.follow(in.record());
    compute.copy(second->data(), first->data(), kBytes);
    compute.zero(first->data(), kBytes);
    zeroed = compute.record();
    out.follow(zeroed);
    const Ticket begun = out.record();
    out.copy(back->data(), second->data(), kBytes);
    out.wait(out.record());
    out.wait(begun);
    right &= std::equal(host->data(), host->data() + kBytes, back->data());
    const std::vector<std::byte> rest = read_back(device, *first);
    right &= std::all_of(rest.begin(), rest.end(), [](std::byte at) { return at == std::byte{0}; });
  }
  return right;
}

}  // namespace

TEST_CASE("cuda device: memory is zeroed, aligned and as large as asked") {
  for_each_order(2, {}, [] {
    {
      Device device(0, 0);
      CHECK(device.name() == "cuda:0");
      for (const std::size_t bytes : {1UL, 4096UL, 4097UL, (2UL << 20) - 1}) {
        const auto buffer = device.allocate(bytes);
        REQUIRE(buffer->bytes() == bytes);
        CHECK(reinterpret_cast<std::uintptr_t>(buffer->data()) % 4096 == 0);
        CHECK(read_back(device, *buffer) == std::vector<std::byte>(bytes));
        device.queue(QueueKind::kCompute).zero(buffer->data(), bytes);
      }
      CHECK(device.allocate(0)->bytes() == 0);
      CHECK(device.memory_peak() == (2 << 20) - 1);
    }
    CHECK(nothing_is_left());
  });
}

TEST_CASE("cuda device: its memory is limited, by what is given and by what there is",
          "[emulation]") {
  cuda_emulation::reset({.device_bytes = 4 << 20}, cuda_emulation::Order::kEager);
  Device given(0, 1 << 20);
  const auto half = given.allocate(512 << 10);
  CHECK_THROWS_WITH(given.allocate((512 << 10) + 1024),
                    "no room for a buffer of 513 KiB in the device's memory: 512 KiB of 1 MiB are "
                    "free, cuda:0; raise --device-memory");
  CHECK(given.allocate(512 << 10)->bytes() == 512 << 10);
  Device whole(0, 0);
  CHECK_THROWS_AS(whole.allocate(4 << 20), BudgetError);
  CHECK(whole.allocate(3 << 20)->bytes() == 3 << 20);
}

TEST_CASE("cuda device: what was given back has room again, whether or not that was waited for",
          "[emulation]") {
  cuda_emulation::reset({.device_bytes = 4 << 20}, cuda_emulation::Order::kLazy);
  Device device(0, 0);
  for (int i = 0; i < 3; ++i) CHECK(device.allocate(3 << 20)->bytes() == 3 << 20);
}

TEST_CASE("cuda device: a GPU that isn't there is named", "[emulation]") {
  cuda_emulation::reset({.devices = 2}, cuda_emulation::Order::kEager);
  CHECK(Device(1, 0).name() == "cuda:1");
  CHECK_THROWS_WITH(Device(2, 0),
                    "there is no GPU of the number 2 among 2, --devices; count them from 0, or "
                    "give --devices cpu");
}

TEST_CASE("cuda device: queues copy in every direction, in order, and follow each other") {
  for_each_order(40, {}, [] {
    {
      Device device(0, 0);
      CHECK(goes_through(device, 4));
    }
    CHECK(nothing_is_left());
    CHECK(cuda_emulation::counters().copied_sync <= 4);  // read_back() alone is not pinned
  });
}

TEST_CASE("cuda device: many threads copy at once, each sees its own copies in order") {
  constexpr std::size_t kBytes = 16 << 10;
  cuda_emulation::reset({}, cuda_emulation::Order::kShuffled, 5);
  Device device(0, 0);
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const auto buffer = device.allocate(kBytes);
      const auto host = device.allocate_pinned(kBytes, "test");
      const auto back = device.allocate_pinned(kBytes, "test");
      Queue& queue = device.queue(t % 2 == 0 ? QueueKind::kIn : QueueKind::kOut);
      for (int round = 0; round < 10; ++round) {
        std::fill_n(host->data(), kBytes, static_cast<std::byte>(16 * t + round));
        queue.copy(buffer->data(), host->data(), kBytes);
        queue.copy(back->data(), buffer->data(), kBytes);
        queue.wait(queue.record());
        right += std::equal(host->data(), host->data() + kBytes, back->data());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == 40);
}

TEST_CASE("cuda device: whichever call fails, an error says so, and nothing is left",
          "[emulation]") {
  constexpr int kUnknown = 999, kMemory = 2;  // cudaErrorUnknown, cudaErrorMemoryAllocation
  for (const int error : {kUnknown, kMemory}) {
    int failed = 0;
    for (int call = 0;; ++call) {
      cuda_emulation::reset({}, cuda_emulation::Order::kShuffled, 3);
      cuda_emulation::fail_after(call, error);
      bool threw = false;
      try {
        Device device(0, 0);
        goes_through(device, 2);
      } catch (const DeviceError&) {
        threw = true;
      } catch (const BudgetError&) {
        threw = error == kMemory;
      }
      CHECK(nothing_is_left());
      if (call >= cuda_emulation::counters().calls) break;
      failed += threw;
    }
    CHECK(failed > 40);
  }
}

TEST_CASE("cuda device: arguments arrive as they were sent, however often the ring comes round") {
  constexpr std::size_t kBytes = 1024;
  constexpr int kSent = 40;
  for_each_order(2, {}, [] {
    Device device(0, 0);
    cuda::StreamQueue& queue = device.queue(QueueKind::kCompute);
    const auto pinned = device.allocate_pinned(kBytes, "test");
    const auto ours = device.allocate(kBytes), arrived = device.allocate(kSent * sizeof(int));
    const auto back = device.allocate_pinned(kSent * sizeof(int), "test");
    {
      cuda::ArgumentRing ring(0, {pinned->data(), pinned->bytes()}, ours->data(), queue.stream());
      for (int i = 0; i < kSent; ++i) {
        cuda::Arguments arguments;
        const std::size_t at = arguments.add(std::vector<int>(50, i));
        const cuda::ArgumentRing::Sent sent = ring.send(arguments);
        queue.copy(arrived->data() + static_cast<std::size_t>(i) * sizeof(int), sent.at<int>(at),
                   sizeof(int));
      }
    }
    queue.copy(back->data(), arrived->data(), arrived->bytes());
    queue.wait(queue.record());
    const auto* const found = reinterpret_cast<const int*>(back->data());
    for (int i = 0; i < kSent; ++i) CHECK(found[i] == i);
  });
}

}  // namespace ooc::test
