// Different edges from random draws, within a given memory: what `ooc-prep generate` makes graphs
// of. Draws are sorted outside memory; those that repeat one before are no new edges.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/base/control.h"
#include "storage/edges/sorted_runs.h"
#include "storage/import/edges/edge_source.h"

namespace ooc {

// The edge that draw `index` gives, the smaller id first; a self loop where it gave none. Called
// from many threads.
using DrawEdge = std::function<Edge(std::uint64_t index)>;

// The first `wanted` different edges of draws 0, 1, ...: which these are depends on nothing else.
// They come in ascending order.
class DistinctEdges final : public EdgeSource {
 public:
  // Scratch files have names that begin with `scratch`; `memory_bytes` is for all that is held
  // meanwhile. Draws in full; where this takes more than `most_draws`, complete() is false.
  DistinctEdges(FileSystem& files, std::string scratch, DrawEdge draw, std::int64_t wanted,
                std::int64_t most_draws, std::int64_t memory_bytes, const Control& control);
  bool complete() const { return found_ == wanted_; }

  // Of the memory given, what next() goes on using.
  static std::int64_t reading_memory(std::int64_t memory_bytes) { return memory_bytes / 8; }
  std::optional<std::int64_t> known_edges() const override { return found_; }
  bool next(std::int64_t max_edges, EdgeBlock& block) override;
  void rewind() override;

 private:
  // Keys in [first, last].
  struct Range {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
  };
  struct Candidates;

  void draw_runs(std::int64_t draws);
  std::int64_t count_distinct() const;
  void add_first_new(std::int64_t draws);
  void remove_known(Candidates& candidates) const;
  // Of at most `most` records, where one key does not have more.
  Range range_from(std::uint64_t first, std::uint64_t most) const;
  // visit(range, its different keys, ascending), in parallel.
  void for_each_range(std::string_view phase,
                      const std::function<void(const Range&, const Records&)>& visit) const;
  void read(const Range& range, Records& part, Records& out) const;

  FileSystem& files_;
  std::string scratch_;
  DrawEdge draw_;
  std::int64_t wanted_;
  std::int64_t memory_bytes_;
  const Control& control_;
  std::vector<std::unique_ptr<SortedRuns>> runs_;
  std::int64_t drawn_ = 0;
  std::int64_t found_ = 0;
  // Of next().
  Records part_, held_;
  std::size_t next_key_ = 0;
  Range range_;
  bool begun_ = false;
  std::uint64_t number_ = 0;
};

}  // namespace ooc
