#include "storage/io/bytes_at_once.h"

#include <catch2/catch.hpp>

using namespace ooc;

namespace {

constexpr std::size_t kMiB = 1 << 20;

// Moves so many MiB, one by one, at a rate in bytes a second; returns the clock then.
double move(BytesAtOnce& at_once, int mib, double rate, bool busy, double clock) {
  for (int i = 0; i < mib; ++i) {
    clock += static_cast<double>(kMiB) / rate;
    at_once.moved(kMiB, busy, clock);
  }
  return clock;
}

double megabytes(const BytesAtOnce& at_once) { return static_cast<double>(at_once.bytes()) / 1e6; }

}  // namespace

TEST_CASE("bytes_at_once: what a disk moves in 2 ms, as far as it is busy") {
  BytesAtOnce at_once(4 * kMiB);
  CHECK(at_once.bytes() == 4 * kMiB);
  CHECK(at_once.fills(4 * kMiB));
  CHECK_FALSE(at_once.fills(4 * kMiB - 1));
  double clock = move(at_once, 2000, 1e9, true, 5);  // 2 MB
  CHECK(at_once.bytes() == 4 * kMiB);
  clock = move(at_once, 2000, 10e9, true, clock);
  CHECK(megabytes(at_once) == Approx(20).epsilon(0.01));
  // It had nothing to do: not what it could.
  clock = move(at_once, 2000, 1e8, false, clock);
  CHECK(megabytes(at_once) == Approx(20).epsilon(0.01));
  clock = move(at_once, 100, 10e9, true, clock + 10);
  CHECK(megabytes(at_once) == Approx(20).epsilon(0.01));
  clock = move(at_once, 4000, 5e9, true, clock);
  CHECK(megabytes(at_once) == Approx(10).epsilon(0.01));
  move(at_once, 4000, 1e9, true, clock);
  CHECK(at_once.bytes() == 4 * kMiB);
}

TEST_CASE("bytes_at_once: what comes all at once says little of a disk") {
  BytesAtOnce at_once(4 * kMiB);
  double clock = 5;
  for (int i = 0; i < 1000; ++i) {
    at_once.moved(48 * kMiB, true, clock);  // the first of it before anything is counted
    at_once.moved(48 * kMiB, true, clock + 1e-6);
    clock += 0.05;
  }
  CHECK(at_once.bytes() == 4 * kMiB);  // 2 GB/s
  move(at_once, 10000, 1e11, true, clock);
  CHECK(at_once.bytes() <= 64 * kMiB);
  CHECK(megabytes(at_once) == Approx(67.1).epsilon(0.01));
}
