// The edges of a tile, a batch at a time: all of them, or those of neighbours in the train split.
#pragma once

#include <cstdint>

#include "storage/format/tile.h"

namespace ooc::cpu {

// The edges at hand, in the tile's order: the row of each inside its block, the neighbour inside
// its span, its number in the tile.
struct EdgeBatch {
  std::int64_t count = 0;
  std::int32_t* rows = nullptr;
  std::int32_t* neighbours = nullptr;
  // Where edges are left out; null: they follow each other from first_edge on.
  std::uint32_t* edges = nullptr;
  std::int64_t first_edge = 0;

  std::int64_t edge(std::int64_t i) const { return edges != nullptr ? edges[i] : first_edge + i; }
};

class TileCursor {
 public:
  // `splits`: of the span's rows; null: every edge is taken. With it, batches have `edges`.
  TileCursor(const TileView& tile, const std::uint8_t* splits) : tile_(tile), splits_(splits) {}

  // Fills the batch with up to `most` edges; false at the end of the tile.
  bool next(std::int64_t most, EdgeBatch& batch);
  // How many edges with the same ends lie directly before each of the batch.
  void parallel_indexes(const EdgeBatch& batch, std::int64_t* indexes, std::int64_t stride);

 private:
  void take_all(std::int64_t most, EdgeBatch& batch);
  void take_train(std::int64_t most, EdgeBatch& batch);
  void find_runs(EdgeBatch& batch);
  void find_pairs(EdgeBatch& batch);
  std::int32_t next_row();

  const TileView& tile_;
  const std::uint8_t* splits_;
  std::int64_t edge_ = 0;       // the next one
  std::uint32_t row_edge_ = 0;  // of find_pairs(): likewise
  std::uint32_t run_ = 0, escape_ = 0;
  std::int32_t row_ = 0;
  std::int32_t last_row_ = -1, last_neighbour_ = -1;
  std::int64_t index_ = 0;
};

}  // namespace ooc::cpu
