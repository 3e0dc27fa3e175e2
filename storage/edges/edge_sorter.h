// The edges of a graph, sorted outside memory in both directions.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "storage/edges/sorted_runs.h"
#include "storage/format/edge_key.h"
#include "storage/format/tile.h"

namespace ooc {

class EdgeSorter {
 public:
  // Spills to files whose names begin with `scratch`.
  EdgeSorter(FileSystem& files, const std::string& scratch, const EdgeKeys& keys,
             const EdgeData& data);

  // Block `number` of the edges, each number once; `data`: EdgeData::bytes() for each edge.
  // Parallel edges keep the order of the blocks. Many threads.
  void add(std::uint64_t number, std::span<const Edge> edges, std::span<const std::byte> data);
  // The same in two steps, so that sorting need not wait for the disk. Memory: a block holds two
  // keys and twice the data for each edge; sorting takes sort_memory() more.
  struct Block {
    std::uint64_t number = 0;
    Records in, out;
  };
  void sort(std::uint64_t number, std::span<const Edge> edges, std::span<const std::byte> data,
            Block& block) const;
  void write(const Block& block);
  void finish();

  const EdgeKeys& keys() const { return keys_; }
  // Edges by their own keys.
  const SortedRuns& in() const { return in_; }
  // Reversed edges: where `in` has the key of u -> v, this has that of an edge v -> u.
  const SortedRuns& out() const { return out_; }

 private:
  EdgeKeys keys_;
  SortedRuns in_, out_;
};

// Bytes that sorting takes for each record beside itself, with its `data_bytes`.
std::int64_t sort_memory(std::size_t data_bytes);

}  // namespace ooc
