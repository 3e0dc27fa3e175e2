// The order in which devices of a ring take items.
#include "sched/plan/ring_order.h"

#include <catch2/catch.hpp>
#include <set>
#include <string>

namespace ooc::test {
namespace {

// What each device takes in each step, items counted from 1: H from the host, R from the one
// before. A device at offset j after its loader begins j steps later.
std::string steps_of(const RingShape& shape, std::int64_t items, std::int64_t steps) {
  std::string log;
  for (std::int64_t step = 1; step <= steps; ++step) {
    log += std::to_string(step) + ":";
    for (std::int64_t device = 0; device < shape.devices; ++device) {
      const std::int64_t position = step - 1 - device % shape.group();
      if (position < 0 || position >= items) continue;
      const std::int64_t item = RingOrder(shape, device, items).item_at(position);
      log += " G" + std::to_string(device) + " " + std::to_string(item + 1) +
             (shape.from_host(device, item) ? "H" : "R");
    }
    log += "\n";
  }
  return log;
}

}  // namespace

TEST_CASE("ring order: four devices, two of them loaders") {
  CHECK(steps_of({4, 2}, 8, 6) ==
        "1: G0 1H G2 3H\n"
        "2: G0 2H G1 1R G2 4H G3 3R\n"
        "3: G0 3R G1 2R G2 1R G3 4R\n"
        "4: G0 4R G1 3R G2 2R G3 1R\n"
        "5: G0 5H G1 4R G2 7H G3 2R\n"
        "6: G0 6H G1 5R G2 8H G3 7R\n");
}

TEST_CASE("ring order: each device takes all items once, from the host or a step after another") {
  for (const RingShape shape : {RingShape{1, 1}, RingShape{2, 1}, RingShape{2, 2}, RingShape{3, 1},
                                RingShape{4, 2}, RingShape{6, 2}, RingShape{8, 4}}) {
    for (const std::int64_t items : {1, 2, 3, 7, 8, 16, 29}) {
      INFO(shape.devices << " devices, " << shape.loaders << " loaders, " << items << " items");
      std::int64_t from_host = 0;
      for (std::int64_t device = 0; device < shape.devices; ++device) {
        std::set<std::int64_t> taken;
        for (std::int64_t position = 0; position < items; ++position) {
          const std::int64_t item = RingOrder(shape, device, items).item_at(position);
          REQUIRE(item >= 0);
          REQUIRE(item < items);
          taken.insert(item);
          from_host += shape.from_host(device, item) ? 1 : 0;
          const bool passed = shape.passes_on(shape.before(device), item);
          CHECK(passed != shape.from_host(device, item));
        }
        CHECK(std::ssize(taken) == items);
      }
      CHECK(from_host == items);
    }
  }
}

TEST_CASE("ring order: spans that are passed on together stay together") {
  CHECK(ring_spans({2, 2}, 1, 7, 2) == std::vector<std::int64_t>{2, 3, 0, 1, 6, 4, 5});
  CHECK(ring_spans({2, 2}, 0, 7, 2) == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6});
}

}  // namespace ooc::test
