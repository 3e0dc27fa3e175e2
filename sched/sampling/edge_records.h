// What the edges of some tiles carry, an edge's beside each other (EdgeData).
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "storage/format/edge_layout.h"

namespace ooc {

class EdgeRecords {
 public:
  // The tiles outlive it.
  EdgeRecords(const EdgeData& data, std::span<const PanelTile> tiles) : data_(data), tiles_(tiles) {
    std::uint32_t begin = 0;
    for (const PanelTile& tile : tiles) {
      begins_.push_back(begin);
      begin += tile.tile.edge_count;
    }
  }

  // Of an edge, which is numbered over the tiles: its weight; and EdgeData::bytes() of it to `to`.
  float weight(std::uint32_t edge) const {
    const std::size_t at = tile_of(edge);
    return tiles_[at].tile.weights[edge - begins_[at]];
  }
  void copy(std::uint32_t edge, std::byte* to) const {
    const std::size_t at = tile_of(edge);
    const TileView& tile = tiles_[at].tile;
    const std::size_t i = edge - begins_[at];
    if (data_.weights) std::memcpy(to, tile.weights + i, sizeof(float));
    if (data_.types) std::memcpy(to + data_.type_offset(), tile.types + i, sizeof(std::uint16_t));
    if (data_.feature_cols > 0) {
      const auto cols = static_cast<std::size_t>(data_.feature_cols);
      std::memcpy(to + data_.feature_offset(), tile.features + i * cols, data_.feature_bytes());
    }
  }

 private:
  std::size_t tile_of(std::uint32_t edge) const {
    const auto after = std::upper_bound(begins_.begin(), begins_.end(), edge);
    return static_cast<std::size_t>(after - begins_.begin()) - 1;
  }

  const EdgeData& data_;
  std::span<const PanelTile> tiles_;
  std::vector<std::uint32_t> begins_;
};

}  // namespace ooc
