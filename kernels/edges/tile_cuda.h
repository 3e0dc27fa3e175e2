// Tiles as kernels find them: an edge chunk's own headers are its directory.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "storage/format/format.h"
#include "storage/format/tile.h"

namespace ooc::cuda {

// As attach_tile() (storage/format/tile.h), of weights alone.
__device__ inline TileView attach(const TileHeader& header, const std::byte* chunk, bool weights) {
  TileView tile;
  tile.encoding = static_cast<TileEncoding>(header.encoding);
  tile.edge_count = header.edge_count;
  tile.row_count = header.row_count;
  tile.escape_count = header.escape_count;
  const std::byte* const bytes = chunk + header.offset;
  if (tile.encoding == TileEncoding::kRuns) {
    tile.ends = reinterpret_cast<const std::uint32_t*>(bytes);
    tile.rows = reinterpret_cast<const std::uint16_t*>(tile.ends + tile.row_count);
    tile.sources = tile.rows + tile.row_count;
  } else {
    tile.sources = reinterpret_cast<const std::uint16_t*>(bytes);
    tile.escapes = tile.sources + tile.edge_count;
    tile.deltas = reinterpret_cast<const std::uint8_t*>(tile.escapes + tile.escape_count);
  }
  if (weights) {
    tile.weights = reinterpret_cast<const float*>(
        bytes + tile_bytes(tile.encoding, tile.edge_count, tile.row_count, tile.escape_count));
  }
  return tile;
}

// The header of a destination block's tile, counted from the panel's first; without edges where
// there is none. `chunk`: null where it is empty.
__device__ inline TileHeader find_tile(const std::byte* chunk, std::uint32_t block) {
  if (chunk == nullptr) return {};
  const auto* const headers = reinterpret_cast<const TileHeader*>(chunk + sizeof(EdgeChunkHeader));
  const std::uint32_t count = reinterpret_cast<const EdgeChunkHeader*>(chunk)->tile_count;
  std::uint32_t low = 0, high = count;
  while (low < high) {
    const std::uint32_t middle = (low + high) / 2;
    if (headers[middle].block < block) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low == count || headers[low].block != block ? TileHeader{} : headers[low];
}

}  // namespace ooc::cuda
