#include "storage/bytes_at_once.h"

#include <catch2/catch.hpp>

using namespace ooc;

namespace {

constexpr std::size_t kMiB = 1 << 20;

// Moves so many MiB, one by one, at a rate in bytes a second; returns the clock then.
double move(BytesAtOnce& at_once, int mib, double rate, bool others_wait, double clock) {
  for (int i = 0; i < mib; ++i) {
    clock += static_cast<double>(kMiB) / rate;
    at_once.moved(kMiB, others_wait, clock);
  }
  return clock;
}

}  // namespace

TEST_CASE("bytes_at_once: what a disk moves in 2 ms, as far as it is busy") {
  BytesAtOnce at_once(4 * kMiB);
  CHECK(at_once.bytes() == 4 * kMiB);
  double clock = move(at_once, 2000, 1e9, true, 5);  // 2 MB
  CHECK(at_once.bytes() == 4 * kMiB);
  clock = move(at_once, 2000, 10e9, true, clock);
  CHECK(static_cast<double>(at_once.bytes()) == Approx(20e6).epsilon(0.01));
  // Nothing was asked for that was not under way: not what the disk could do.
  clock = move(at_once, 2000, 1e8, false, clock);
  CHECK(static_cast<double>(at_once.bytes()) == Approx(20e6).epsilon(0.01));
  clock += 10;
  clock = move(at_once, 2000, 5e9, true, clock);
  CHECK(static_cast<double>(at_once.bytes()) == Approx(10e6).epsilon(0.01));
  move(at_once, 2000, 1e9, true, clock);
  CHECK(at_once.bytes() == 4 * kMiB);
}
