// The edges from v to v that a propagation adds where the data has none: a tile of their own.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "sched/run/self_loops.h"
#include "storage/dataset/dataset.h"
#include "storage/format/tile.h"

namespace ooc {

// Owns what its view points to. Weights are 1, types and features 0.
struct LoopTile {
  std::vector<std::uint32_t> ends;
  std::vector<std::uint16_t> rows, sources, types;
  std::vector<float> weights, features;

  TileView view() const;
};

// Of the vertices of a block without a self loop in the data. Sources count from the block's span.
// Edges carry no more than `data`.
LoopTile make_loop_tile(const EdgeLayout& edges, const EdgeData& data, std::int64_t block,
                        const SelfLoops& there);

// The same, made by whoever asks first. Many threads.
class BlockLoops {
 public:
  // All but the block outlives it.
  BlockLoops(const EdgeLayout& edges, const EdgeData& data, std::int64_t block,
             const SelfLoops& there)
      : edges_(edges), data_(data), block_(block), there_(there) {}
  TileView view() const {
    std::call_once(once_, [this] { tile_ = make_loop_tile(edges_, data_, block_, there_); });
    return tile_.view();
  }

 private:
  const EdgeLayout& edges_;
  const EdgeData& data_;
  std::int64_t block_;
  const SelfLoops& there_;
  mutable std::once_flag once_;
  mutable LoopTile tile_;
};

}  // namespace ooc
