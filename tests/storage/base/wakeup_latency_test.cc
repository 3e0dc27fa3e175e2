#include "storage/base/wakeup_latency.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <thread>

namespace ooc {
namespace {

// As the kernel has them; a header with them and one with threads can't be had together.
struct Attributes {
  std::uint32_t size, policy;
  std::uint64_t flags;
  std::int32_t nice;
  std::uint32_t priority;
  std::uint64_t runtime, deadline, period;
};

// Nothing of them where the system doesn't tell.
Attributes attributes() {
  Attributes found{};
  if (::syscall(SYS_sched_getattr, 0, &found, sizeof found, 0) != 0) return {};
  return found;
}

}  // namespace

TEST_CASE("prompt thread: its turns are short, and those of threads that it creates are as usual") {
  Attributes before{}, prompt{}, child{};
  std::thread([&] {
    before = attributes();
    reduce_wakeup_latency();
    prompt = attributes();
    std::thread([&] { child = attributes(); }).join();
  }).join();
  CHECK(prompt.policy == before.policy);
  CHECK(prompt.nice == before.nice);
  CHECK(child.runtime == before.runtime);
  if (before.runtime == 0 || before.policy != 0 || before.nice < 0) {
    WARN("skipped: this kernel (before Linux 6.12) knows no length of turns, or they are given");
    return;
  }
  CHECK(prompt.runtime == 100'000);
}

}  // namespace ooc
