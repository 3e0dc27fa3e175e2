#include "sched/stream/hazards.h"

#include <array>
#include <catch2/catch.hpp>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "sched/plan/io_chunks.h"
#include "sched/stream/pending_writes.h"
#include "sched/stream/rows_writer.h"

namespace ooc::test {

TEST_CASE("hazards: memory is busy from begin() to end(), and what lies beside it isn't") {
  std::array<std::byte, 100> memory{};
  const auto range = [&](std::size_t begin, std::size_t end) {
    return std::span<const std::byte>(memory).subspan(begin, end - begin);
  };
  Hazards hazards;
  CHECK(!hazards.busy(range(0, 100)));
  hazards.begin(range(20, 30));
  hazards.begin(range(40, 60));
  CHECK(hazards.busy(range(0, 100)));
  CHECK(hazards.busy(range(29, 40)));
  CHECK(hazards.busy(range(10, 21)));
  CHECK(hazards.busy(range(45, 50)));
  CHECK(!hazards.busy(range(0, 20)));
  CHECK(!hazards.busy(range(30, 40)));
  CHECK(!hazards.busy(range(60, 100)));
  CHECK(!hazards.busy(range(25, 25)));
  hazards.end(memory.data() + 20);
  CHECK(!hazards.busy(range(0, 40)));
  CHECK(hazards.busy(range(0, 41)));
  hazards.reset();
  CHECK(!hazards.busy(range(0, 100)));
}

TEST_CASE("leaving rows: units are theirs from add() to remove()") {
  PendingWrites leaving;
  leaving.add({3, 7, 1});
  leaving.add({3, 8, 1});
  CHECK(leaving.count() == 2);
  CHECK(leaving.has({3, 7, 1}));
  CHECK(!leaving.has({3, 7, 0}));
  CHECK(!leaving.has({2, 7, 1}));
  leaving.remove({3, 7, 1});
  CHECK(!leaving.has({3, 7, 1}));
  leaving.reset();
  CHECK(leaving.count() == 0);
}

TEST_CASE("slots: those in which rows lie that are leaving are not given out") {
  std::array<std::byte, 40> region{};
  Hazards hazards;
  Slots slots(region, 4, hazards);
  CHECK(slots.count() == 4);
  hazards.begin(std::span<const std::byte>(region).subspan(8, 4));  // in two of them
  std::set<std::byte*> taken{slots.take(), slots.take()};
  CHECK(taken == std::set<std::byte*>{region.data() + 20, region.data() + 30});
  CHECK(!slots.has_one());
  hazards.end(region.data() + 8);
  REQUIRE(slots.has_one());
  taken = {slots.take(), slots.take()};
  CHECK(taken == std::set<std::byte*>{region.data(), region.data() + 10});
  CHECK(!slots.has_one());
  slots.give_back(region.data() + 10);
  REQUIRE(slots.has_one());
  CHECK(slots.take() == region.data() + 10);
}

TEST_CASE("rows writer: a unit of a piece opens when the rows that lay there have left") {
  Plan plan;
  PlannedTensor& tensor = plan.tensors.emplace_back();
  tensor.layout = {256, 32, 128};
  tensor.dtype = DType::kF32;
  const std::int64_t bytes = rows_bytes(tensor, 0, 2, 0, 1);
  ResidentRange& range = plan.devices.emplace_back().ranges.emplace_back();
  range.tensor = 0;
  range.end_block = 2;
  range.memory = {0, bytes};
  plan.sections.emplace_back().passes.resize(2);
  std::vector<std::byte> arena(static_cast<std::size_t>(bytes));
  Driver driver(1);
  Residency residency(plan, plan.devices[0].ranges, arena.data());
  Hazards hazards;
  TensorAccess access{&tensor, 0, nullptr, &residency};
  access.hazards = &hazards;
  const auto writer = std::make_shared<RowsWriter>(driver, access, Slots());
  const auto lock = driver.lock();
  const auto there = std::span(arena).subspan(arena.size() / 2, 4096);
  hazards.begin(there);
  CHECK(writer->ready(0, 128));
  CHECK(!writer->ready(128, 256));
  hazards.end(there.data());
  CHECK(writer->ready(128, 256));
}

TEST_CASE("rows writer: sums have their place when those of the range before have left it") {
  PlannedTensor tensor;
  tensor.layout = {256, 32, 128};
  tensor.dtype = DType::kF32;
  const std::int64_t bytes = rows_bytes(tensor, 0, 1, 0, 1);
  std::vector<std::byte> arena(static_cast<std::size_t>(bytes));
  Driver driver(1);
  Hazards hazards;
  TensorAccess access{&tensor, -1};
  access.hazards = &hazards;
  const auto before =
      std::make_shared<RowsWriter>(driver, access, RowsPlace{arena.data(), 0, 1, 0}, 1);
  const auto after =
      std::make_shared<RowsWriter>(driver, access, RowsPlace{arena.data(), 1, 2, 0}, 1);
  const auto lock = driver.lock();
  CHECK(before->ready(0, 128));
  CHECK(after->at(128, 0) == arena.data());
  CHECK(!after->ready(128, 256));
  before->finish(0, 100);
  CHECK(!after->ready(128, 256));
  before->finish(100, 128);
  CHECK(after->ready(128, 256));
}

}  // namespace ooc::test
