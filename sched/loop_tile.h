// The edges from v to v that a propagation adds where the data has none: a tile of their own.
#pragma once

#include <cstdint>
#include <vector>

#include "storage/dataset.h"
#include "storage/tile.h"

namespace ooc {

// Owns what its view points to. Weights are 1, types and features 0.
struct LoopTile {
  std::vector<std::uint32_t> ends;
  std::vector<std::uint16_t> rows, sources, types;
  std::vector<float> weights, features;

  TileView view() const;
};

// Of the vertices of a block without a self loop in the data; `degrees`: their rows of the dataset's
// degrees. Sources count from the block's span.
LoopTile make_loop_tile(const EdgeLayout& edges, std::int64_t block, const std::int32_t* degrees);

}  // namespace ooc
