#include "sched/span_groups.h"

#include <catch2/catch.hpp>
#include <set>
#include <utility>
#include <vector>

using namespace ooc;

// Groups in order, none empty, none larger than it may be; the last one takes what is left.
TEST_CASE("span groups: every span is in one, and the last may be larger") {
  for (const std::int64_t spans : {1, 2, 5, 12, 62}) {
    for (const std::int64_t group : {1, 3, 4, 100}) {
      for (const std::int64_t last : {group, 2 * group, 3 * group}) {
        INFO(spans << " spans, " << group << " at once, the last " << last);
        Pass pass;
        pass.span_group = group;
        pass.last_group = last;
        const SpanGroups groups(pass, spans);
        std::int64_t span = 0;
        for (std::int64_t index = 0; index < groups.count(); ++index) {
          CHECK(groups.begin(index) == span);
          const std::int64_t most = index + 1 == groups.count() ? last : group;
          CHECK(groups.end(index) > span);
          CHECK(groups.end(index) - span <= most);
          for (; span < groups.end(index); ++span) CHECK(groups.of(span) == index);
        }
        CHECK(span == spans);
        // One group fewer would be too few.
        CHECK((groups.count() == 1 || spans > (groups.count() - 2) * group + last));
      }
    }
  }
}

TEST_CASE("span groups: a panel takes its groups in order, the first two before the next panel") {
  for (const std::int64_t spans : {1, 2, 5, 12, 62}) {
    for (const std::int64_t last : {3, 6, 9}) {
      INFO(spans << " spans, 3 at once, the last " << last);
      Pass pass;
      pass.parts = 2;
      pass.span_group = 3;
      pass.last_group = last;
      const SpanGroups groups(pass, spans);
      std::vector<std::pair<std::int64_t, std::int64_t>> order;
      CHECK(groups.for_each_panel(4, 7, [&](std::int64_t group, std::int64_t panel) {
        order.emplace_back(group, panel);
        return true;
      }));
      const auto count = static_cast<std::size_t>(groups.count());
      CHECK(std::set(order.begin(), order.end()).size() == 3 * count);
      REQUIRE(order.size() == 3 * count);
      std::vector<std::int64_t> next(7);  // group, by panel
      for (const auto& [group, panel] : order) {
        CHECK(group == next[static_cast<std::size_t>(panel)]++);
      }
      // With a last group that is larger, where neither of the two is it.
      const bool together = last > 3 && count > 2;
      if (count > 1) {
        CHECK(order[1] == (together ? std::pair<std::int64_t, std::int64_t>{1, 4}
                                    : std::pair<std::int64_t, std::int64_t>{0, 5}));
      }
      std::size_t visits = 0;
      pass.parts = 1;  // with nothing before it
      std::int64_t last_group = 0;
      SpanGroups(pass, spans).for_each_panel(4, 7, [&](std::int64_t group, std::int64_t) {
        CHECK(group >= last_group);
        last_group = group;
        return true;
      });
      CHECK_FALSE(
          groups.for_each_panel(4, 7, [&](std::int64_t, std::int64_t) { return ++visits < 3; }));
      CHECK(visits == 3);
    }
  }
}
