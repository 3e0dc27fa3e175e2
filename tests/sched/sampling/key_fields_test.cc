#include "sched/sampling/key_fields.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <tuple>
#include <vector>

#include "tests/support/random_graph.h"

namespace ooc {
namespace {

TEST_CASE("keys give their numbers back and sort as they do") {
  using Numbers = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;
  test::SplitMix random(1);
  const std::vector<Numbers> limits{{1, 1, 1},
                                    {1, 1, ~std::uint64_t{0}},
                                    {~std::uint64_t{0}, 1, 1},
                                    {1000, 1, 7},
                                    {std::uint64_t{1} << 32, std::uint64_t{1} << 12, 1 << 20}};
  for (const auto& [first, second, third] : limits) {
    const KeyFields fields(first, second, third);
    const auto draw = [&] {
      return Numbers{random() % first, random() % second, random() % third};
    };
    for (int i = 0; i < 200; ++i) {
      const Numbers a = draw(), b = i % 2 == 0 ? draw() : a;
      const std::uint64_t x = std::apply([&](auto... n) { return fields.key(n...); }, a);
      const std::uint64_t y = std::apply([&](auto... n) { return fields.key(n...); }, b);
      REQUIRE(Numbers{fields.first(x), fields.second(x), fields.third(x)} == a);
      REQUIRE((x < y) == (a < b));
      const bool same = std::get<0>(a) == std::get<0>(b) && std::get<1>(a) == std::get<1>(b);
      REQUIRE(fields.same_pair(x, y) == same);
      REQUIRE((fields.first_of_pair(x) <= x && x <= fields.last_of_pair(x)));
      REQUIRE(fields.same_pair(fields.first_of_pair(x), fields.last_of_pair(x)));
      REQUIRE((fields.begin(std::get<0>(a)) <= x && x <= fields.last(std::get<0>(a))));
      if (std::get<0>(a) != std::get<0>(b)) {
        REQUIRE((fields.last(std::get<0>(a)) < y || y < fields.begin(std::get<0>(a))));
      }
    }
  }
  CHECK(KeyFields::fit(std::uint64_t{1} << 32, 1 << 12, 1 << 20));
  CHECK_FALSE(KeyFields::fit((std::uint64_t{1} << 32) + 1, 1 << 12, 1 << 20));
}

}  // namespace
}  // namespace ooc
