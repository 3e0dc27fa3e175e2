// How the edges of a dataset are cut into edge chunks, and what is found in one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "storage/base/types.h"
#include "storage/format/tile.h"

namespace ooc {

// How the edges of a dataset are cut; the same for both directions.
struct EdgeLayout {
  std::int64_t vertices = 0;
  std::int64_t edges = 0;
  std::int64_t block_rows = 0;    // a power of two
  std::int64_t span_rows = 0;     // block_rows times a power of two, at most 65,536
  std::int64_t panel_blocks = 0;  // destination blocks in a panel
  EdgeData data = {};             // what every edge carries

  std::int64_t span_count() const { return ceil_div(vertices, span_rows); }
  std::int64_t block_count() const { return ceil_div(vertices, block_rows); }
  std::int64_t panel_count() const { return ceil_div(block_count(), panel_blocks); }
  std::int64_t chunk_count() const { return span_count() * panel_count(); }

  bool operator==(const EdgeLayout&) const = default;
};

// The tiles of one edge chunk; they point into its bytes.
struct PanelTile {
  std::int64_t block;  // destination block in the graph
  TileView tile;
};

// Of a chunk whose directory lies within it, in order of their blocks.
std::vector<PanelTile> panel_tiles(const EdgeLayout& layout, std::int64_t panel,
                                   std::span<const std::byte> chunk);

}  // namespace ooc
