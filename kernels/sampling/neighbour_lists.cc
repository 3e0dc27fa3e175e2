#include "kernels/sampling/neighbour_lists.h"

#include <algorithm>

namespace ooc {
void NeighbourLists::build(const EdgeLayout& layout, std::span<const PanelTile> tiles,
                           std::span<const std::uint8_t> asks,
                           std::span<const std::uint32_t> names) {
  has_edges_ = layout.data.bytes() > 0;
  find(layout, tiles, asks);
  sort(layout.span_rows);
  if (!names.empty()) sort_by_name(names);
}

// Every edge is written, and stays if its vertex asks: no branch depends on what is asked for.
void NeighbourLists::find(const EdgeLayout& layout, std::span<const PanelTile> tiles,
                          std::span<const std::uint8_t> asks) {
  std::size_t found = 0;
  std::uint32_t edge = 0;
  for (const PanelTile& tile : tiles) {
    const auto first = static_cast<std::uint32_t>(tile.block * layout.block_rows);
    const std::size_t room = found + tile.tile.edge_count + 1;
    if (found_vertices_.size() < room) {
      found_vertices_.resize(room);
      found_neighbours_.resize(room);
      if (has_edges_) found_edges_.resize(room);
    }
    const auto take = [&](std::uint16_t row, std::uint16_t source) {
      found_vertices_[found] = source;
      found_neighbours_[found] = first + row;
      if (has_edges_) found_edges_[found] = edge++;
      found += asks[source];
    };
    for_each_edge(tile.tile, take);
  }
  size_ = static_cast<std::int64_t>(found);
}

void NeighbourLists::sort(std::int64_t span_rows) {
  const auto size = static_cast<std::size_t>(size_);
  begins_.assign(static_cast<std::size_t>(span_rows) + 2, 0);
  for (std::size_t i = 0; i < size; ++i) ++begins_[found_vertices_[i] + std::size_t{2}];
  for (std::size_t v = 2; v < begins_.size(); ++v) begins_[v] += begins_[v - 1];
  neighbours_.resize(size);
  if (has_edges_) edges_.resize(size);
  for (std::size_t i = 0; i < size; ++i) {
    const std::uint32_t at = begins_[found_vertices_[i] + std::size_t{1}]++;
    neighbours_[at] = found_neighbours_[i];
    if (has_edges_) edges_[at] = found_edges_[i];
  }
}

void NeighbourLists::sort_by_name(std::span<const std::uint32_t> names) {
  const auto reorder = [&](AlignedVector<std::uint32_t>& lists, std::size_t begin) {
    list_.resize(order_.size());
    for (std::size_t i = 0; i < order_.size(); ++i) {
      list_[i] = lists[begin + (order_[i] & 0xffffffffu)];
    }
    std::copy(list_.begin(), list_.end(), lists.begin() + static_cast<std::ptrdiff_t>(begin));
  };
  for (std::size_t v = 0; v + 1 < begins_.size(); ++v) {
    const std::size_t begin = begins_[v], count = begins_[v + 1] - begin;
    if (count < 2) continue;
    order_.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      order_[i] = std::uint64_t{names[neighbours_[begin + i]]} << 32 | i;
    }
    std::sort(order_.begin(), order_.end());
    reorder(neighbours_, begin);
    if (has_edges_) reorder(edges_, begin);
  }
}

}  // namespace ooc
