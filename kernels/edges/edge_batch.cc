#include "kernels/edges/edge_batch.h"

#include <algorithm>

#include "kernels/spec/row_kernels.h"

namespace ooc::cpu {

bool TileCursor::next(std::int64_t most, EdgeBatch& batch) {
  splits_ == nullptr ? take_all(most, batch) : take_train(most, batch);
  return batch.count > 0;
}

void TileCursor::take_all(std::int64_t most, EdgeBatch& batch) {
  batch.first_edge = edge_;
  batch.count = std::min<std::int64_t>(most, tile_.edge_count - edge_);
  for (std::int64_t i = 0; i < batch.count; ++i, ++edge_) {
    batch.rows[i] = next_row();
    batch.neighbours[i] = tile_.sources[edge_];
  }
}

// First which edges, without a branch; then what there is to know of them, which are few.
void TileCursor::take_train(std::int64_t most, EdgeBatch& batch) {
  const std::uint16_t* const sources = tile_.sources;
  const std::uint8_t* const splits = splits_;
  std::uint32_t* const edges = batch.edges;
  std::int64_t count = 0;
  while (count < most && edge_ < tile_.edge_count) {
    const auto end =
        static_cast<std::uint32_t>(std::min<std::int64_t>(edge_ + most - count, tile_.edge_count));
    for (auto edge = static_cast<std::uint32_t>(edge_); edge < end; ++edge) {
      edges[count] = edge;
      count += splits[sources[edge]] == kTrainSplit ? 1 : 0;
    }
    edge_ = end;
  }
  batch.count = count;
  for (std::int64_t i = 0; i < count; ++i) batch.neighbours[i] = sources[edges[i]];
  tile_.encoding == TileEncoding::kRuns ? find_runs(batch) : find_pairs(batch);
}

// The rows of a batch's edges, after those of the batch before. Local copies, since members might
// lie where rows are written.
void TileCursor::find_runs(EdgeBatch& batch) {
  const TileView tile = tile_;
  std::uint32_t run = run_;
  for (std::int64_t i = 0; i < batch.count; ++i) {
    while (batch.edges[i] >= tile.ends[run]) ++run;
    batch.rows[i] = tile.rows[run];
  }
  run_ = run;
}

void TileCursor::find_pairs(EdgeBatch& batch) {
  const TileView tile = tile_;
  std::uint32_t edge = row_edge_, escape = escape_;
  std::int32_t row = row_;
  for (std::int64_t i = 0; i < batch.count; ++i) {
    for (const std::uint32_t last = batch.edges[i]; edge <= last; ++edge) {
      const std::uint8_t delta = tile.deltas[edge];
      row = delta == kRowEscape ? tile.escapes[escape++] : row + delta;
    }
    batch.rows[i] = row;
  }
  row_edge_ = edge;
  escape_ = escape;
  row_ = row;
}

std::int32_t TileCursor::next_row() {
  if (tile_.encoding == TileEncoding::kRuns) {
    while (edge_ >= tile_.ends[run_]) ++run_;
    return tile_.rows[run_];
  }
  const std::uint8_t delta = tile_.deltas[edge_];
  row_ = delta == kRowEscape ? tile_.escapes[escape_++] : row_ + delta;
  return row_;
}

void TileCursor::parallel_indexes(const EdgeBatch& batch, std::int64_t* indexes,
                                  std::int64_t stride) {
  for (std::int64_t i = 0; i < batch.count; ++i) {
    const bool same = batch.rows[i] == last_row_ && batch.neighbours[i] == last_neighbour_;
    index_ = same ? index_ + 1 : 0;
    last_row_ = batch.rows[i];
    last_neighbour_ = batch.neighbours[i];
    indexes[i * stride] = index_;
  }
}

}  // namespace ooc::cpu
