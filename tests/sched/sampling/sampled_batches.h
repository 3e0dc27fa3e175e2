// Many batches of the same seeds, sampled from a skewed graph at once.
#pragma once

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "sched/sampling/superbatch.h"
#include "tests/support/aligned_buffer.h"
#include "tests/support/fake_block_io.h"
#include "tests/support/tiny_dataset.h"

namespace ooc::test {

// In-degrees from 1 to 200, parallel edges and loops, but of odd vertices; edges are known by their
// weights.
inline TinyDataset skewed_graph() {
  TinyDataset spec;
  spec.vertices = 256;
  spec.seed = 2;
  spec.span_rows = 64;
  spec.panel_blocks = 3;
  spec.permute = true;
  spec.edge_weights = true;
  constexpr std::array kDegrees{1, 2, 3, 5, 8, 13, 40, 200};
  SplitMix random(3);
  for (std::int64_t v = 0; v < spec.vertices; ++v) {
    const int degree = kDegrees[static_cast<std::size_t>(v) % kDegrees.size()];
    // Some of each class take all from few sources, so that edges are parallel.
    const auto sources = static_cast<std::uint64_t>(v % 32 < 8 ? 20 : spec.vertices);
    for (int i = 0; i < degree; ++i) {
      const auto source = static_cast<std::int64_t>(random() % sources);
      spec.edges.push_back({v % 2 == 1 && source == v ? source - 1 : source, v});
    }
  }
  return spec;
}

struct SampledEdge {
  std::int64_t source = 0, destination = 0;  // original ids
  std::size_t edge = 0;                      // of the spec
};

// Many batches, all of the same seeds.
class Sampled {
 public:
  Sampled(const TinyDataset& spec, const std::vector<HopSampling>& hops,
          const std::vector<std::int64_t>& seeds, std::int64_t batches, std::uint64_t key)
      : spec_(spec),
        dataset_(write_tiny_dataset(files_, spec)),
        io_(files_),
        edges_(io_, dataset_.edge_file(Direction::kOut), Direction::kOut, nullptr, nullptr, {},
               nullptr) {
    for (std::size_t i = 0; i < spec.edges.size(); ++i) {
      REQUIRE(numbers_[spec.edges[i].destination].emplace(tiny_edge(spec, i).weight, i).second);
    }
    read_vertices();
    constexpr std::int64_t kSlots = 8;
    std::size_t slot = 0;
    const ChunkFileReader& file = dataset_.edge_file(Direction::kOut).file();
    for (std::uint64_t c = 0; c < file.shape().chunk_count; ++c) {
      slot = std::max<std::size_t>(slot, io_aligned(file.entry(c).bytes));
    }
    slots_.emplace(slot * kSlots);
    const SuperbatchOptions options{
        .shape = {static_cast<std::uint64_t>(spec.vertices), static_cast<std::uint64_t>(batches),
                  512},
        .hops = hops,
        .scratch = "/lists",
        .list_bytes = 256 << 20,
        .resolve = {},
        .expand = {.edge_slots = {slots_->data(), slots_->size()}, .edge_slot_count = kSlots}};
    batch_.emplace(driver_, files_, SampledGraph{edges_, degrees_, names_}, options);
    sample(seeds, batches, key);
  }

  // By batch.
  const std::vector<std::vector<SampledEdge>>& edges() const { return sampled_; }

 private:
  void read_vertices() {
    const std::int64_t rows = dataset_.vertices();
    std::vector<std::int64_t> ids(static_cast<std::size_t>(rows));
    dataset_.tensor("ids")->read_rows(0, rows, ids.data());
    names_.assign(ids.begin(), ids.end());
    std::vector<std::int32_t> degrees(ids.size() * kDegreeColumns);
    dataset_.tensor("degrees")->read_rows(0, rows, degrees.data());
    for (std::size_t at = 0; at < degrees.size(); at += kDegreeColumns) {
      degrees_.push_back(
          static_cast<std::uint32_t>(degrees[at + kInDegree] + degrees[at + kSelfLoops]));
    }
  }

  void sample(const std::vector<std::int64_t>& seeds, std::int64_t batches, std::uint64_t key) {
    const KeyFields& fields = batch_->fields();
    Records records;
    std::vector<std::uint64_t> keys;
    for (std::uint64_t b = 0; b < static_cast<std::uint64_t>(batches); ++b) {
      keys.push_back(mix64(key ^ mix64(b)));
      for (std::uint64_t row = 0; row < names_.size(); ++row) {
        if (std::count(seeds.begin(), seeds.end(), names_[row]) == 0) continue;
        records.keys.push_back(fields.key(row, b, 0));
      }
    }
    sort_records(records, 0);
    SortedRuns list(files_, "/seeds", 0, 256 << 20);
    list.write(0, std::move(records));
    list.finish();
    REQUIRE(batch_->sample(list, keys));
    std::vector<std::vector<std::uint64_t>> rows(keys.size());  // by batch and number
    for (std::size_t b = 0; b < rows.size(); ++b) {
      const std::int64_t count = batch_->level_rows(static_cast<std::int64_t>(b)).back();
      rows[b].resize(static_cast<std::size_t>(count));
    }
    Records all;
    batch_->vertices().read(0, ~std::uint64_t{0}, all);
    for (const std::uint64_t word : all.keys) {
      rows[fields.second(word)].at(fields.third(word)) = fields.first(word);
    }
    for (std::size_t b = 0; b < rows.size(); ++b) read_batch(b, rows[b]);
  }

  void read_batch(std::size_t b, const std::vector<std::uint64_t>& rows) {
    std::vector<BatchEdge> edges;
    AlignedVector<std::byte> records;
    batch_->read_edges(static_cast<std::int64_t>(b), edges, records);
    std::vector<SampledEdge>& own = sampled_.emplace_back();
    for (std::size_t i = 0; i < edges.size(); ++i) {
      float weight = 0;
      std::memcpy(&weight, records.data() + i * sizeof weight, sizeof weight);
      const std::int64_t destination = names_[rows.at(edges[i].destination)];
      own.push_back(
          {names_[rows.at(edges[i].source)], destination, numbers_.at(destination).at(weight)});
      if (spec_.edges[own.back().edge].source != own.back().source) FAIL("another edge's weight");
    }
  }

  const TinyDataset& spec_;
  MemoryFileSystem files_;
  Dataset dataset_;
  MemoryBlockIo io_;
  EdgeStore edges_;
  std::map<std::int64_t, std::map<float, std::size_t>> numbers_;  // by destination
  std::vector<std::uint32_t> names_, degrees_;
  std::optional<AlignedBuffer> slots_;
  Driver driver_{2};
  std::optional<Superbatch> batch_;
  std::vector<std::vector<SampledEdge>> sampled_;
};

}  // namespace ooc::test
