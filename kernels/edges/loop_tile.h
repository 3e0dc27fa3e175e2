// The edges from v to v that a propagation adds where the data has none: a tile of their own.
#pragma once

#include <cstdint>
#include <vector>

#include "storage/format/edge_layout.h"

namespace ooc::cpu {

// Owns what its view points to. Weights are 1, types and features 0.
struct LoopTile {
  std::vector<std::uint32_t> ends;
  std::vector<std::uint16_t> rows, sources, types;
  std::vector<float> weights, features;

  TileView view() const;
};

// Of the vertices of a block whose bit in `there` isn't set. Sources count from the block's span.
// Edges carry `data`.
LoopTile make_loop_tile(const EdgeLayout& edges, const EdgeData& data, std::int64_t block,
                        const std::uint64_t* there);

}  // namespace ooc::cpu
