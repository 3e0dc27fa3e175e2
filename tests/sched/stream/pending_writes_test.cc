#include "sched/stream/pending_writes.h"

#include <array>
#include <catch2/catch.hpp>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "sched/plan/io_chunks.h"
#include "sched/stream/rows_writer.h"

namespace ooc::test {

TEST_CASE("leaving rows: memory and units are theirs from add() to remove()") {
  std::array<std::byte, 100> memory{};
  const auto range = [&](std::size_t begin, std::size_t end) {
    return std::span<const std::byte>(memory).subspan(begin, end - begin);
  };
  PendingWrites leaving;
  CHECK(!leaving.lie_in(range(0, 100)));
  leaving.add({3, 7, 1}, range(20, 30));
  leaving.add({3, 8, 1}, range(40, 60));
  CHECK(leaving.count() == 2);
  CHECK(leaving.has({3, 7, 1}));
  CHECK(!leaving.has({3, 7, 0}));
  CHECK(!leaving.has({2, 7, 1}));
  CHECK(leaving.lie_in(range(0, 100)));
  CHECK(leaving.lie_in(range(29, 40)));
  CHECK(leaving.lie_in(range(10, 21)));
  CHECK(leaving.lie_in(range(45, 50)));
  CHECK(!leaving.lie_in(range(0, 20)));
  CHECK(!leaving.lie_in(range(30, 40)));
  CHECK(!leaving.lie_in(range(60, 100)));
  CHECK(!leaving.lie_in(range(25, 25)));
  leaving.remove({3, 7, 1});
  CHECK(!leaving.has({3, 7, 1}));
  CHECK(!leaving.lie_in(range(0, 40)));
  CHECK(leaving.lie_in(range(0, 41)));
  leaving.reset();
  CHECK(leaving.count() == 0);
  CHECK(!leaving.lie_in(range(0, 100)));
}

TEST_CASE("slots: those in which rows lie that are leaving are not given out") {
  std::array<std::byte, 40> region{};
  PendingWrites leaving;
  Slots slots(region, 4, leaving);
  CHECK(slots.count() == 4);
  leaving.add({0, 0, 0}, std::span<const std::byte>(region).subspan(8, 4));  // in two of them
  CHECK(slots.has(2));
  REQUIRE(!slots.has(3));
  std::set<std::byte*> taken{slots.take(), slots.take()};
  CHECK(taken == std::set<std::byte*>{region.data() + 20, region.data() + 30});
  CHECK(slots.has(0));
  CHECK(!slots.has(1));
  leaving.remove({0, 0, 0});
  REQUIRE(slots.has(2));
  taken = {slots.take(), slots.take()};
  CHECK(taken == std::set<std::byte*>{region.data(), region.data() + 10});
  slots.give_back(region.data() + 10);
  CHECK(!slots.has(2));
  REQUIRE(slots.has(1));
  CHECK(slots.take() == region.data() + 10);
}

TEST_CASE("rows writer: a unit of a piece opens when the rows that lay there have left") {
  Plan plan;
  PlannedTensor& tensor = plan.tensors.emplace_back();
  tensor.layout = {256, 32, 128};
  tensor.dtype = DType::kF32;
  const std::int64_t bytes = rows_bytes(tensor, 0, 2, 0, 1);
  ResidentRange& range = plan.ranges.emplace_back();
  range.tensor = 0;
  range.end_block = 2;
  range.memory = {0, bytes};
  plan.sections.emplace_back().passes.resize(2);
  std::vector<std::byte> arena(static_cast<std::size_t>(bytes));
  Driver driver(1);
  Residency residency(plan, plan.ranges, arena.data());
  PendingWrites leaving;
  TensorAccess access{&tensor, 0, nullptr, &residency};
  access.leaving = &leaving;
  const auto writer = std::make_shared<RowsWriter>(driver, access, Slots());
  const auto lock = driver.lock();
  leaving.add({1, 0, 0}, std::span(arena).subspan(arena.size() / 2, 4096));
  CHECK(writer->ready(0, 128));
  CHECK(!writer->ready(128, 256));
  leaving.remove({1, 0, 0});
  CHECK(writer->ready(128, 256));
}

}  // namespace ooc::test
