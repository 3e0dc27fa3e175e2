#include "storage/format/edge_layout.h"

#include <cstring>

#include "storage/format/format.h"

namespace ooc {

std::vector<PanelTile> panel_tiles(const EdgeLayout& layout, std::int64_t panel,
                                   std::span<const std::byte> chunk) {
  std::vector<PanelTile> tiles;
  if (chunk.empty()) return tiles;
  EdgeChunkHeader header;
  std::memcpy(&header, chunk.data(), sizeof(header));
  tiles.reserve(header.tile_count);
  for (std::uint32_t i = 0; i < header.tile_count; ++i) {
    TileHeader found;
    std::memcpy(&found, chunk.data() + sizeof(header) + i * sizeof(found), sizeof(found));
    TileView tile;
    tile.encoding = static_cast<TileEncoding>(found.encoding);
    tile.edge_count = found.edge_count;
    tile.row_count = found.row_count;
    tile.escape_count = found.escape_count;
    attach_tile(tile, chunk.data() + found.offset, layout.data);
    tiles.push_back({panel * layout.panel_blocks + found.block, tile});
  }
  return tiles;
}

}  // namespace ooc
