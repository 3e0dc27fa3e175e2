// Frequencies of what batches choose, and what sums over samples come to in the mean. Seeds are
// fixed: it is the same at every run.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <vector>

#include "tests/sched/sampling/sampled_batches.h"

namespace ooc {
namespace {

using test::Sampled;
using test::SampledEdge;

using InEdges = std::map<std::int64_t, std::vector<std::size_t>>;  // numbers, by destination

InEdges in_edges(const test::TinyDataset& spec) {
  InEdges all;
  for (std::size_t i = 0; i < spec.edges.size(); ++i) {
    all[spec.edges[i].destination].push_back(i);
  }
  return all;
}

// A sum of squares that is distributed as chi-square with so many degrees of freedom.
struct ChiSquare {
  double sum = 0, freedom = 0;

  // Standard normal, nearly (Wilson and Hilferty, PNAS 17(12), 1931).
  double deviation() const {
    const double ninth = 2 / (9 * freedom);
    return (std::cbrt(sum / freedom) - (1 - ninth)) / std::sqrt(ninth);
  }
  // p > 0.001: neither too uneven nor too even.
  void check() const {
    INFO(sum << " with " << freedom << " degrees of freedom");
    CHECK(deviation() < 3.09);
    CHECK(deviation() > -3.09);
  }
};

// Cells that are equally likely, of independent draws.
ChiSquare even_cells(const std::vector<double>& counts) {
  double all = 0;
  for (const double count : counts) all += count;
  ChiSquare chi{0, static_cast<double>(counts.size()) - 1};
  const double mean = all / static_cast<double>(counts.size());
  for (const double count : counts) chi.sum += (count - mean) * (count - mean) / mean;
  return chi;
}

// Times that an edge was taken, by its number.
std::map<std::size_t, double> times_taken(const Sampled& sampled) {
  std::map<std::size_t, double> times;
  for (const auto& batch : sampled.edges()) {
    for (const SampledEdge& at : batch) ++times[at.edge];
  }
  return times;
}

TEST_CASE("sampling statistics: in-edges are taken equally often, whatever the degree") {
  const test::TinyDataset spec = test::skewed_graph();
  const InEdges lists = in_edges(spec);
  std::vector<std::int64_t> seeds;
  for (std::int64_t v = 0; v < 64; ++v) seeds.push_back(v);
  constexpr std::int64_t kBatches = 800;
  for (const bool replace : {false, true}) {
    for (const std::int64_t fanout : {2, 7}) {
      INFO("fan-out " << fanout << (replace ? " with replacement" : ""));
      std::map<std::size_t, ChiSquare> classes;  // by degree
      std::map<std::size_t, double> times;
      for (const std::uint64_t epoch : {1, 2}) {
        const Sampled sampled(spec, {{fanout, replace}}, seeds, kBatches, mix64(epoch));
        for (const auto& [edge, count] : times_taken(sampled)) times[edge] += count;
      }
      for (const std::int64_t v : seeds) {
        const std::vector<std::size_t>& list = lists.at(v);
        const auto degree = static_cast<double>(list.size());
        const auto k = static_cast<double>(fanout);
        const double all = 2 * kBatches, mean = all * (replace ? k : std::min(k, degree)) / degree;
        double squares = 0, sum = 0;
        for (const std::size_t edge : list) {
          squares += (times[edge] - mean) * (times[edge] - mean);
          sum += times[edge];
        }
        REQUIRE(sum == Approx(mean * degree));
        if (!replace && k >= degree) {
          REQUIRE(squares == 0);
          continue;
        }
        if (list.size() < 2) continue;
        // Those of one sample exclude each other.
        const double variance = replace ? mean : mean * (1 - k / degree) * degree / (degree - 1);
        classes[list.size()].sum += squares / variance;
        classes[list.size()].freedom += degree - 1;
      }
      REQUIRE(classes.size() > 3);
      for (const auto& [degree, chi] : classes) {
        INFO("in-degree " << degree);
        chi.check();
      }
    }
  }
}

TEST_CASE("sampling statistics: every set of in-edges is as likely as any other") {
  const test::TinyDataset spec = test::skewed_graph();
  const InEdges lists = in_edges(spec);
  for (const std::int64_t v : {3, 11}) {  // of 5 in-edges: 10 pairs, 25 draws of two
    const std::vector<std::size_t>& list = lists.at(v);
    REQUIRE(list.size() == 5);
    const Sampled sampled(spec, {{2, false}}, {v}, 4000, 7);
    std::map<std::pair<std::size_t, std::size_t>, double> pairs;
    for (const auto& batch : sampled.edges()) {
      REQUIRE(batch.size() == 2);
      ++pairs[std::minmax(batch[0].edge, batch[1].edge)];
    }
    std::vector<double> counts;
    for (const auto& [pair, count] : pairs) counts.push_back(count);
    REQUIRE(counts.size() == 10);
    even_cells(counts).check();
  }
}

// Who took which of its in-edges, first beside second, where each takes one.
void check_independent(const test::TinyDataset& spec, const Sampled& sampled, std::int64_t a,
                       std::int64_t b, std::size_t batches_later) {
  const InEdges lists = in_edges(spec);
  const auto place = [&](std::size_t batch, std::int64_t v) {
    for (const SampledEdge& at : sampled.edges()[batch]) {
      if (at.destination != v) continue;
      const std::vector<std::size_t>& list = lists.at(v);
      return static_cast<std::size_t>(std::find(list.begin(), list.end(), at.edge) - list.begin());
    }
    FAIL("no edge taken");
    return std::size_t{0};
  };
  const std::size_t rows = lists.at(a).size(), cols = lists.at(b).size();
  std::vector<double> counts(rows * cols);
  for (std::size_t batch = 0; batch + batches_later < sampled.edges().size(); ++batch) {
    ++counts[place(batch, a) * cols + place(batch + batches_later, b)];
  }
  INFO("vertices " << a << " and " << b << ", " << batches_later << " batches later");
  even_cells(counts).check();
}

TEST_CASE("sampling statistics: vertices and batches choose independently of each other") {
  const test::TinyDataset spec = test::skewed_graph();
  const Sampled sampled(spec, {{1, false}}, {3, 4, 11, 12}, 6000, 21);
  check_independent(spec, sampled, 3, 11, 0);
  check_independent(spec, sampled, 4, 12, 0);
  check_independent(spec, sampled, 3, 3, 1);
  check_independent(spec, sampled, 12, 12, 1);
  check_independent(spec, sampled, 4, 4, 64);
  // In epochs with other keys, and where the seed is found by another.
  const Sampled next(spec, {{1, false}}, {3, 11}, 6000, 22);
  std::vector<double> counts(25);
  const InEdges lists = in_edges(spec);
  for (std::size_t b = 0; b < next.edges().size(); ++b) {
    std::size_t cell = 0;
    for (const Sampled* epoch : {&sampled, &next}) {
      for (const SampledEdge& at : epoch->edges()[b]) {
        if (at.destination != 3) continue;
        const std::vector<std::size_t>& list = lists.at(3);
        cell = cell * 5 + static_cast<std::size_t>(std::find(list.begin(), list.end(), at.edge) -
                                                   list.begin());
      }
    }
    ++counts.at(cell);
  }
  even_cells(counts).check();
}

double value_of(std::int64_t vertex) {
  return static_cast<double>(mix64(static_cast<std::uint64_t>(vertex) + 5) % 1000) / 100 - 3;
}

constexpr std::int64_t kSamples = 10'000;

TEST_CASE("sampling statistics: scaled sums over samples are those of all in-edges in the mean") {
  const test::TinyDataset spec = test::skewed_graph();
  const InEdges lists = in_edges(spec);
  const std::vector<std::int64_t> seeds{0, 1, 2, 3, 4, 5, 6, 7, 35, 38, 39};
  for (const bool replace : {false, true}) {
    const Sampled sampled(spec, {{4, replace}}, seeds, kSamples, 5);
    std::map<std::int64_t, double> sums;
    for (const auto& batch : sampled.edges()) {
      std::map<std::int64_t, std::pair<double, double>> found;  // how many, and their sum
      for (const SampledEdge& at : batch) {
        ++found[at.destination].first;
        found[at.destination].second += value_of(at.source);
      }
      for (const auto& [v, of] : found) {
        sums[v] += static_cast<double>(lists.at(v).size()) / of.first * of.second;
      }
    }
    for (const std::int64_t v : seeds) {
      const std::vector<std::size_t>& list = lists.at(v);
      const auto degree = static_cast<double>(list.size());
      double exact = 0, squares = 0;
      for (const std::size_t edge : list) exact += value_of(spec.edges[edge].source);
      for (const std::size_t edge : list) {
        const double apart = value_of(spec.edges[edge].source) - exact / degree;
        squares += apart * apart;
      }
      const double k = replace ? 4 : std::min(4.0, degree);
      double variance = degree * squares / k;
      if (!replace && degree > 1) variance *= (degree - k) / (degree - 1);
      const double mean = sums[v] / kSamples;
      INFO("vertex " << v << (replace ? " with replacement" : ""));
      CHECK(std::abs(mean - exact) <= 3 * std::sqrt(variance / kSamples) + 1e-9);
    }
  }
}

TEST_CASE("sampling statistics: so are sums of sums over two hops") {
  const test::TinyDataset spec = test::skewed_graph();
  const InEdges lists = in_edges(spec);
  const auto degree = [&](std::int64_t v) { return static_cast<double>(lists.at(v).size()); };
  const std::vector<std::int64_t> seeds{5, 15, 39};
  for (const std::int64_t v : seeds) {  // one that takes itself would do so twice, by one draw
    for (const std::size_t edge : lists.at(v)) REQUIRE(spec.edges[edge].source != v);
  }
  const Sampled sampled(spec, {{3}, {2}}, seeds, kSamples, 77);
  std::map<std::int64_t, std::pair<double, double>> sums;  // of estimates, and of their squares
  for (const auto& batch : sampled.edges()) {
    std::map<std::int64_t, std::pair<double, double>> first, second;
    const auto scaled = [&](const auto& found, std::int64_t v) {
      const auto at = found.find(v);
      return at == found.end() ? 0 : degree(v) / at->second.first * at->second.second;
    };
    for (const SampledEdge& at : batch) {
      ++first[at.destination].first;
      first[at.destination].second += value_of(at.source);
    }
    for (const SampledEdge& at : batch) {
      ++second[at.destination].first;
      second[at.destination].second += scaled(first, at.source);
    }
    for (const std::int64_t v : seeds) {
      const double estimate = scaled(second, v);
      sums[v].first += estimate / kSamples;
      sums[v].second += estimate * estimate / kSamples;
    }
  }
  for (const std::int64_t v : seeds) {
    double exact = 0;
    for (const std::size_t edge : lists.at(v)) {
      for (const std::size_t next : lists.at(spec.edges[edge].source)) {
        exact += value_of(spec.edges[next].source);
      }
    }
    const auto [mean, square] = sums[v];
    INFO("vertex " << v);
    CHECK(std::abs(mean - exact) <= 3 * std::sqrt((square - mean * mean) / kSamples));
  }
}

}  // namespace
}  // namespace ooc
