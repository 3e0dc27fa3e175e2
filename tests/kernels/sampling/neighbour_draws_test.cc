#include "kernels/sampling/neighbour_draws.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <numeric>
#include <vector>

namespace ooc {
namespace {

using Ordinals = std::vector<std::uint32_t>;

Ordinals distinct(std::uint64_t asker, std::uint32_t degree, std::size_t count) {
  Ordinals ordinals(count);
  draw_distinct(asker, degree, ordinals);
  return ordinals;
}

TEST_CASE("distinct draws ascend, differ and are below the degree") {
  for (const std::uint32_t degree : {1u, 2u, 7u, 64u, 1000u}) {
    for (std::uint32_t count = 0; count <= std::min(degree, 40u); ++count) {
      const Ordinals drawn = distinct(asker_key(degree, count), degree, count);
      REQUIRE(std::is_sorted(drawn.begin(), drawn.end()));
      REQUIRE(std::adjacent_find(drawn.begin(), drawn.end()) == drawn.end());
      REQUIRE(std::all_of(drawn.begin(), drawn.end(), [&](auto o) { return o < degree; }));
    }
  }
  Ordinals all(64);
  std::iota(all.begin(), all.end(), 0u);
  CHECK(distinct(5, 64, 64) == all);
}

// Pearson's statistic, and its value at p = 0.001 (Wilson and Hilferty).
double chi_square(const std::map<Ordinals, int>& counts, std::size_t cells, int draws) {
  const double expected = static_cast<double>(draws) / static_cast<double>(cells);
  double sum = static_cast<double>(cells - counts.size()) * expected;
  for (const auto& [drawn, count] : counts) {
    sum += (count - expected) * (count - expected) / expected;
  }
  return sum;
}
double critical(std::size_t cells) {
  const double freedom = static_cast<double>(cells - 1), a = 2 / (9 * freedom);
  const double root = 1 - a + 3.0902 * std::sqrt(a);
  return freedom * root * root * root;
}

TEST_CASE("every set of distinct draws is as likely as any other") {
  constexpr int kDraws = 120000;
  std::map<Ordinals, int> counts;  // of 10 choose 3 = 120
  for (int i = 0; i < kDraws; ++i) {
    ++counts[distinct(asker_key(1, static_cast<std::uint64_t>(i)), 10, 3)];
  }
  CHECK(chi_square(counts, 120, kDraws) < critical(120));
  counts.clear();  // askers that differ in the batch alone
  for (int i = 0; i < kDraws; ++i) {
    ++counts[distinct(asker_key(static_cast<std::uint64_t>(i), 1), 10, 3)];
  }
  CHECK(chi_square(counts, 120, kDraws) < critical(120));
}

TEST_CASE("repeated draws are each uniform") {
  constexpr int kDraws = 100000;
  std::map<Ordinals, int>
      counts;  // sets with repetition: pairs of 5, two orders but for equal ones
  double equal = 0;
  for (int i = 0; i < kDraws; ++i) {
    Ordinals drawn(2);
    draw_repeated(asker_key(2, static_cast<std::uint64_t>(i)), 5, drawn);
    REQUIRE(std::is_sorted(drawn.begin(), drawn.end()));
    equal += drawn[0] == drawn[1] ? 1 : 0;
    ++counts[{drawn[0]}];
    ++counts[{drawn[1]}];
  }
  CHECK(chi_square(counts, 5, 2 * kDraws) < critical(5) * 2);
  CHECK(equal / kDraws == Approx(0.2).margin(0.005));
}

}  // namespace
}  // namespace ooc
