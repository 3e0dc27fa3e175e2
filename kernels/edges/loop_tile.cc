#include "kernels/edges/loop_tile.h"

#include <algorithm>

namespace ooc::cpu {

TileView LoopTile::view() const {
  TileView tile;
  tile.encoding = TileEncoding::kRuns;
  tile.edge_count = tile.row_count = static_cast<std::uint32_t>(rows.size());
  tile.ends = ends.data();
  tile.rows = rows.data();
  tile.sources = sources.data();
  tile.weights = weights.data();
  tile.types = types.data();
  tile.features = features.data();
  return tile;
}

LoopTile make_loop_tile(const EdgeLayout& edges, const EdgeData& data, std::int64_t block,
                        const std::uint64_t* there) {
  const std::int64_t begin = block * edges.block_rows;
  const std::int64_t count = std::min(edges.block_rows, edges.vertices - begin);
  LoopTile loops;
  loops.rows.reserve(static_cast<std::size_t>(count));
  loops.sources.reserve(static_cast<std::size_t>(count));
  loops.ends.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    if ((there[(begin + i) / 64] >> ((begin + i) % 64) & 1) != 0) continue;
    loops.rows.push_back(static_cast<std::uint16_t>(i));
    loops.sources.push_back(static_cast<std::uint16_t>((begin + i) % edges.span_rows));
    loops.ends.push_back(static_cast<std::uint32_t>(loops.rows.size()));
  }
  const std::size_t size = loops.rows.size();
  if (data.weights) loops.weights.assign(size, 1.0f);
  if (data.types) loops.types.assign(size, 0);
  loops.features.assign(size * static_cast<std::size_t>(data.feature_cols), 0.0f);
  return loops;
}

}  // namespace ooc::cpu
