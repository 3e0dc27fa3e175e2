#include "sched/span_groups.h"

#include <catch2/catch.hpp>

using namespace ooc;

// Groups in order, none empty, none larger than it may be; the last one takes what is left.
TEST_CASE("span groups: every span is in one, and the last may be larger") {
  for (const std::int64_t spans : {1, 2, 5, 12, 62}) {
    for (const std::int64_t group : {1, 3, 4, 100}) {
      for (const std::int64_t last : {group, 2 * group}) {
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
