#include "sched/plan/span_windows.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <utility>
#include <vector>

using namespace ooc;

namespace {

constexpr std::int64_t kBlockRows = 4, kPanelBlocks = 6;

struct Schedule {
  std::int64_t spans, most, group_blocks;
  std::int64_t first, end;  // blocks of the destination range
  EdgeLayout edges;

  SpanWindows windows() const { return {edges, group_blocks, most}; }
  std::vector<SpanWindow> all() const {
    std::vector<SpanWindow> list;
    CHECK(windows().for_each(first, end, [&](const SpanWindow& window) {
      list.push_back(window);
      return true;
    }));
    return list;
  }
};

// Calls check(schedule): panels of six blocks, destination ranges of one block to all of several
// panels.
template <class Check>
void for_each_schedule(Check&& check) {
  constexpr std::pair<std::int64_t, std::int64_t> kDstRanges[] = {{0, 1}, {0, 6},  {4, 5},
                                                                  {2, 9}, {5, 20}, {0, 24}};
  for (const std::int64_t spans : {1, 2, 5, 12, 62}) {
    for (const std::int64_t most : {1, 2, 3, 4, 100}) {
      for (const std::int64_t group_blocks : {1, 2, 4, 6}) {
        for (const auto& [first, end] : kDstRanges) {
          EdgeLayout edges{spans * kBlockRows, 1, kBlockRows, kBlockRows, kPanelBlocks, {}};
          INFO(spans << " spans, " << most << " at once, groups of " << group_blocks << ", blocks "
                     << first << " to " << end);
          REQUIRE(edges.span_count() == spans);
          check(Schedule{spans, most, group_blocks, first, end, edges});
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("span windows: every block takes every span once, in order, not too many at once") {
  for_each_schedule([](const Schedule& schedule) {
    std::map<std::int64_t, std::int64_t> taken;  // spans, by block
    for (std::int64_t block = schedule.first; block < schedule.end; ++block) taken[block] = 0;
    for (const SpanWindow& window : schedule.all()) {
      CHECK(window.end_span > window.first_span);
      CHECK(window.end_span - window.first_span <= schedule.most);
      CHECK(window.first_block / kPanelBlocks == window.panel);
      CHECK((window.end_block - 1) / kPanelBlocks == window.panel);
      for (const auto& [block, end] : taken) CHECK(window.end_span - end <= schedule.most);
      for (std::int64_t block = window.first_block; block < window.end_block; ++block) {
        CHECK(std::exchange(taken.at(block), window.end_span) == window.first_span);
      }
    }
    for (const auto& [block, end] : taken) CHECK(end == schedule.spans);
  });
}

TEST_CASE("span windows: each lies a step further than the one before") {
  for_each_schedule([](const Schedule& schedule) {
    const std::int64_t groups = schedule.windows().group_count(schedule.first, schedule.end);
    std::int64_t reached = 0;
    for (const SpanWindow& window : schedule.all()) {
      CHECK(window.end_span >= reached);
      if (window.end_span < schedule.spans) {
        CHECK(window.end_span - reached <= SpanWindows::step(schedule.most, groups));
      }
      reached = window.end_span;
    }
  });
  CHECK(SpanWindows::step(6, 1) == 6);
  CHECK(SpanWindows::step(6, 3) == 2);
  CHECK(SpanWindows::step(6, 4) == 2);
}

TEST_CASE("span windows: blocks come to the last span in order, half a window or more at once") {
  for_each_schedule([](const Schedule& schedule) {
    std::int64_t next = schedule.first;
    for (const SpanWindow& window : schedule.all()) {
      if (window.end_span < schedule.spans) continue;
      CHECK(window.first_block == next);
      CHECK(window.end_span - window.first_span >=
            std::min(schedule.spans, ceil_div(schedule.most, 2)));
      next = window.end_block;
    }
    CHECK(next == schedule.end);
  });
}

// What slots of edges rely on.
TEST_CASE("span windows: a panel's chunks come once, and few are held") {
  for_each_schedule([](const Schedule& schedule) {
    const SpanWindows windows = schedule.windows();
    std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> held;  // uses left
    std::size_t chunks = 0;
    for (const SpanWindow& window : schedule.all()) {
      const std::int64_t first = std::max(window.panel * kPanelBlocks, schedule.first);
      const std::int64_t end = std::min((window.panel + 1) * kPanelBlocks, schedule.end);
      for (std::int64_t span = window.new_span; span < window.end_span; ++span, ++chunks) {
        CHECK(held.emplace(std::pair(window.panel, span), windows.group_count(first, end)).second);
      }
      const std::int64_t most = std::min(schedule.most, schedule.spans);
      CHECK(static_cast<std::int64_t>(held.size()) < 2 * most);
      for (std::int64_t span = window.first_span; span < window.end_span; ++span) {
        const auto chunk = held.find({window.panel, span});
        REQUIRE(chunk != held.end());
        if (--chunk->second == 0) held.erase(chunk);
      }
    }
    CHECK(held.empty());
    const std::int64_t panels =
        ceil_div(schedule.end, kPanelBlocks) - schedule.first / kPanelBlocks;
    CHECK(static_cast<std::int64_t>(chunks) == panels * schedule.spans);
  });
}

TEST_CASE("span windows: a visit ends them") {
  const EdgeLayout edges{12 * kBlockRows, 1, kBlockRows, kBlockRows, kPanelBlocks, {}};
  int visits = 0;
  CHECK_FALSE(
      SpanWindows(edges, 3, 3).for_each(0, 6, [&](const SpanWindow&) { return ++visits < 3; }));
  CHECK(visits == 3);
}
