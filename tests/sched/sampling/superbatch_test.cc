#include "sched/sampling/superbatch.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/sampling/neighbour_draws.h"
#include "kernels/sampling/neighbour_keys.h"
#include "tests/support/aligned_buffer.h"
#include "tests/support/fake_block_io.h"
#include "tests/support/tiny_dataset.h"

namespace ooc {
namespace {

// Of the natural order, whatever the dataset's.
struct Sampled {
  std::vector<std::set<std::int64_t>> levels;  // what each adds
  // From source to destination, with the weight it carries.
  std::multiset<std::tuple<std::int64_t, std::int64_t, float>> edges;
  bool operator==(const Sampled&) const = default;
};

struct Setup {
  test::TinyDataset spec;
  std::vector<HopSampling> hops{{3}, {2}};
  std::vector<std::vector<std::int64_t>> seeds{{1, 5, 9}, {9, 200}, {299}, {5, 1, 77, 78, 79}};
  std::int64_t workers = 2;
  std::size_t list_bytes = 1 << 20;
  std::size_t buffer_records = 1 << 10;
  std::int64_t range_bytes = 1 << 20;
  std::int64_t slots = 8;

  Setup() {
    spec.vertices = 300;
    spec.span_rows = 32;
    spec.panel_blocks = 3;
    spec.edges = test::random_edges(spec.vertices, 2500, 3);
    for (std::size_t i = 0; i < 200; ++i) spec.edges.push_back(spec.edges[i]);  // parallel
    for (std::int64_t v = 0; v < 250; ++v) spec.edges.push_back({v, 7});        // a hub
  }
  std::uint64_t batch_key(std::size_t batch) const { return mix64(batch + 99); }
};

using InEdges = std::vector<std::pair<std::int64_t, float>>;  // sources ascending, weights

// The in-edges that have the smallest keys.
std::vector<std::uint32_t> smallest(const HopSampling& hop, const InEdges& edges,
                                    std::uint64_t stream, std::int64_t vertex) {
  const std::uint64_t asker = asker_key(stream, static_cast<std::uint64_t>(vertex));
  std::vector<std::pair<std::uint64_t, std::uint32_t>> order;
  std::uint32_t parallel = 0;
  for (std::uint32_t i = 0; i < edges.size(); ++i) {
    parallel = i > 0 && edges[i].first == edges[i - 1].first ? parallel + 1 : 0;
    const auto name = static_cast<std::uint32_t>(edges[i].first);
    const std::uint64_t key =
        hop.choice == HopSampling::Choice::kLabor
            ? source_key(stream, edge_name(name, parallel))
            : weighted_key(source_key(asker, edge_name(name, parallel)), edges[i].second);
    if (key != kNeverTaken) order.emplace_back(key, i);
  }
  std::sort(order.begin(), order.end());
  std::vector<std::uint32_t> taken;
  for (std::size_t i = 0; i < order.size() && std::ssize(taken) < hop.fanout; ++i) {
    taken.push_back(order[i].second);
  }
  return taken;
}

// Draws made by the book, vertex by vertex.
std::vector<Sampled> expected(const Setup& setup) {
  std::map<std::int64_t, InEdges> in_edges;
  for (std::size_t i = 0; i < setup.spec.edges.size(); ++i) {
    const Edge& edge = setup.spec.edges[i];
    const float weight = setup.spec.edge_weights ? test::tiny_edge(setup.spec, i).weight : 0;
    in_edges[edge.destination].emplace_back(edge.source, weight);
  }
  for (auto& [v, list] : in_edges) {
    std::stable_sort(list.begin(), list.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
  }
  std::vector<Sampled> all;
  for (std::size_t batch = 0; batch < setup.seeds.size(); ++batch) {
    Sampled& sampled = all.emplace_back();
    std::set<std::int64_t> known(setup.seeds[batch].begin(), setup.seeds[batch].end());
    sampled.levels.push_back(known);
    for (const HopSampling& hop : setup.hops) {
      std::set<std::int64_t> fresh;
      for (const std::int64_t v : sampled.levels.back()) {
        const auto& list = in_edges[v];
        const auto degree = static_cast<std::uint32_t>(list.size());
        std::vector<std::uint32_t> ordinals(degree);
        std::iota(ordinals.begin(), ordinals.end(), 0u);
        const std::uint64_t asker =
            asker_key(setup.batch_key(batch), static_cast<std::uint64_t>(v));
        const auto fanout = static_cast<std::uint32_t>(hop.fanout);
        if (hop.by_key()) {
          ordinals = smallest(hop, list, setup.batch_key(batch), v);
        } else if (hop.replace && degree > 0) {
          ordinals.resize(fanout);
          draw_repeated(asker, degree, ordinals);
        } else if (hop.fanout != HopSampling::kAll && fanout < degree) {
          ordinals.resize(fanout);
          draw_distinct(asker, degree, ordinals);
        }
        for (const std::uint32_t o : ordinals) {
          sampled.edges.emplace(list[o].first, v, list[o].second);
          if (known.insert(list[o].first).second) fresh.insert(list[o].first);
        }
      }
      sampled.levels.push_back(fresh);
    }
  }
  return all;
}

class Sampler {
 public:
  explicit Sampler(const Setup& setup)
      : setup_(setup),
        dataset_(test::write_tiny_dataset(files_, setup.spec)),
        base_(files_),
        io(base_),
        edges_(io, dataset_.edge_file(Direction::kOut), Direction::kOut, nullptr, nullptr, {},
               nullptr),
        driver(setup.workers) {
    const auto rows = static_cast<std::size_t>(setup.spec.vertices);
    std::vector<std::int64_t> ids(rows);
    dataset_.tensor("ids")->read_rows(0, setup.spec.vertices, ids.data());
    names_.assign(ids.begin(), ids.end());
    std::vector<std::int32_t> degrees(rows * kDegreeColumns);
    dataset_.tensor("degrees")->read_rows(0, setup.spec.vertices, degrees.data());
    for (std::size_t v = 0; v < rows; ++v) {
      degrees_.push_back(static_cast<std::uint32_t>(degrees[v * kDegreeColumns + kInDegree] +
                                                    degrees[v * kDegreeColumns + kSelfLoops]));
    }
    std::size_t slot = 0;
    const ChunkFileReader& file = dataset_.edge_file(Direction::kOut).file();
    for (std::uint64_t c = 0; c < file.shape().chunk_count; ++c) {
      slot = std::max<std::size_t>(slot, io_aligned(file.entry(c).bytes));
    }
    slots_.emplace(slot * static_cast<std::size_t>(setup.slots));
    SuperbatchOptions options{
        .shape = {static_cast<std::uint64_t>(setup.spec.vertices), 64, 4096},
        .hops = setup.hops,
        .scratch = "/lists",
        .list_bytes = setup.list_bytes,
        .resolve = {.range_records = 64, .buffer_records = setup.buffer_records},
        .expand = {.range_bytes = setup.range_bytes,
                   .buffer_records = setup.buffer_records,
                   .edge_slots = {slots_->data(), slots_->size()},
                   .edge_slot_count = setup.slots}};
    batch_.emplace(driver, files_,
                   SampledGraph{edges_, degrees_,
                                setup.spec.permute ? std::span<const std::uint32_t>(names_)
                                                   : std::span<const std::uint32_t>{}},
                   options);
  }

  bool sample() {
    std::map<std::int64_t, std::uint64_t> rows;
    for (std::size_t row = 0; row < names_.size(); ++row) rows[names_[row]] = row;
    SortedRuns seeds(files_, "/seeds", 0);
    Records records;
    std::vector<std::uint64_t> keys;
    for (std::size_t b = 0; b < setup_.seeds.size(); ++b) {
      keys.push_back(setup_.batch_key(b));
      for (const std::int64_t v : setup_.seeds[b]) {
        records.keys.push_back(batch_->fields().key(rows[v], b, 0));
      }
    }
    sort_records(records, 0);
    seeds.write(0, records);
    seeds.finish();
    return batch_->sample(seeds, keys);
  }

  // In original ids; numbers are checked on the way.
  std::vector<Sampled> result() const {
    std::vector<std::map<std::uint64_t, std::uint64_t>> vertices(setup_.seeds.size());
    Records all;
    batch_->vertices().read(0, ~std::uint64_t{0}, all);
    const KeyFields& fields = batch_->fields();
    for (const std::uint64_t key : all.keys) {
      REQUIRE(vertices[fields.second(key)].emplace(fields.third(key), fields.first(key)).second);
    }
    std::vector<Sampled> sampled;
    for (std::int64_t b = 0; b < batch_->batches(); ++b) {
      const auto& rows = vertices[static_cast<std::size_t>(b)];
      const std::vector<std::int64_t> levels = batch_->level_rows(b);
      REQUIRE(std::ssize(rows) == levels.back());
      REQUIRE((rows.empty() || rows.rbegin()->first + 1 == rows.size()));
      Sampled& at = sampled.emplace_back();
      std::int64_t begin = 0;
      for (const std::int64_t end : levels) {
        auto& level = at.levels.emplace_back();
        for (std::int64_t i = begin; i < end; ++i) {
          const auto number = static_cast<std::uint64_t>(i);
          if (i > begin) REQUIRE(rows.at(number - 1) < rows.at(number));
          level.insert(names_[rows.at(number)]);
        }
        begin = end;
      }
      add_edges(b, rows, at);
    }
    return sampled;
  }

 private:
  void add_edges(std::int64_t b, const std::map<std::uint64_t, std::uint64_t>& rows,
                 Sampled& at) const {
    std::vector<BatchEdge> edges;
    AlignedVector<std::byte> records;
    batch_->read_edges(b, edges, records);
    for (std::size_t i = 0; i < edges.size(); ++i) {
      if (i > 0) {
        REQUIRE(std::tuple(edges[i - 1].destination, edges[i - 1].source) <=
                std::tuple(edges[i].destination, edges[i].source));
      }
      float weight = 0;
      if (setup_.spec.edge_weights) {
        std::memcpy(&weight, records.data() + i * sizeof weight, sizeof weight);
      }
      at.edges.emplace(names_[rows.at(edges[i].source)], names_[rows.at(edges[i].destination)],
                       weight);
    }
  }

  const Setup& setup_;
  test::MemoryFileSystem files_;
  Dataset dataset_;
  test::MemoryBlockIo base_;

 public:
  test::FaultyBlockIo io;

 private:
  EdgeStore edges_;
  std::vector<std::uint32_t> names_, degrees_;
  std::optional<test::AlignedBuffer> slots_;

 public:
  Driver driver;

 private:
  std::optional<Superbatch> batch_;
};

void check(const Setup& setup) {
  Sampler sampler(setup);
  REQUIRE(sampler.sample());
  REQUIRE(sampler.result() == expected(setup));
}

TEST_CASE("a superbatch holds what its batches choose, draw by draw") {
  for (const bool permute : {false, true}) {
    Setup setup;
    setup.spec.permute = permute;
    check(setup);
    setup.hops = {{4, true}, {3, true}};
    check(setup);
    setup.hops = {{HopSampling::kAll}, {2}, {HopSampling::kAll}};
    check(setup);
    setup.hops = {{300}};
    check(setup);
  }
}

TEST_CASE("edges that a batch takes carry what they carried") {
  for (const bool permute : {false, true}) {
    Setup setup;
    setup.spec.permute = permute;
    setup.spec.edge_weights = true;
    check(setup);
    setup.hops = {{HopSampling::kAll}, {HopSampling::kAll}};
    check(setup);
  }
}

TEST_CASE("keys choose the in-edges that have the smallest ones") {
  using Choice = HopSampling::Choice;
  for (const bool permute : {false, true}) {
    for (const Choice choice : {Choice::kLabor, Choice::kWeighted}) {
      for (const bool tiny : {false, true}) {
        Setup setup;
        setup.spec.permute = permute;
        setup.spec.edge_weights = true;  // of which half are below 0
        setup.hops = {{4, false, choice}, {3, false, choice}, {HopSampling::kAll, false, choice}};
        if (tiny) {
          setup.list_bytes = 0;
          setup.buffer_records = 16;
          setup.range_bytes = 300;
          setup.workers = 3;
          setup.slots = permute ? 8 : 1;
        }
        check(setup);
      }
    }
  }
}

TEST_CASE("vertices of a batch that prefer the same sources have fewer of them") {
  const auto vertices = [](HopSampling::Choice choice) {
    Setup setup;
    setup.spec.edges = test::random_edges(setup.spec.vertices, 9000, 3);
    setup.hops = {{5, false, choice}, {5, false, choice}};
    std::vector<std::int64_t> seeds(20);
    std::iota(seeds.begin(), seeds.end(), 0);
    setup.seeds = {seeds};
    std::size_t count = 0;
    const std::vector<Sampled> sampled = expected(setup);
    for (const auto& level : sampled[0].levels) count += level.size();
    return count;
  };
  CHECK(vertices(HopSampling::Choice::kLabor) * 3 < vertices(HopSampling::Choice::kUniform) * 2);
}

TEST_CASE("neither memory nor workers change what is sampled") {
  for (const bool permute : {false, true}) {
    for (const std::int64_t workers : {1, 3}) {
      Setup setup;
      setup.spec.permute = permute;
      setup.workers = workers;
      setup.list_bytes = 0;
      setup.buffer_records = 16;
      setup.range_bytes = 64;
      check(setup);
      setup.slots = permute ? 8 : 1;
      setup.list_bytes = 2000;
      check(setup);
    }
  }
}

TEST_CASE("a batch is the same whatever goes with it") {
  Setup all;
  const std::vector<Sampled> together = expected(all);
  Setup one;
  one.seeds = {all.seeds[0]};  // keys go by the batch
  CHECK(expected(one).front() == together.front());
  check(one);
}

TEST_CASE("spans in which nobody asks are not read") {
  Setup setup;
  setup.spec.edges = {{100, 1}, {200, 100}, {250, 200}};
  setup.seeds = {{1}};
  Sampler sampler(setup);
  REQUIRE(sampler.sample());
  CHECK(sampler.result() == expected(setup));
  CHECK(sampler.io.reads == 2);
}

TEST_CASE("sampling stops, and errors of storage come through") {
  Setup setup;
  {
    Sampler sampler(setup);
    std::atomic<bool> stop{false};
    sampler.io.stop = &stop;
    sampler.io.stop_at_read = 4;
    sampler.driver.stop_on(&stop);
    CHECK_FALSE(sampler.sample());
  }
  Sampler sampler(setup);
  sampler.io.faults.first_failing_read = 5;
  CHECK_THROWS_AS(sampler.sample(), IoError);
  sampler.io.faults.first_failing_read = 0;
  REQUIRE(sampler.sample());
  CHECK(sampler.result() == expected(setup));
}

}  // namespace
}  // namespace ooc
