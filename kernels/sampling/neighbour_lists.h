// The neighbours that edge chunks have of some of their span's vertices, as lists: what samplers
// choose from. Of edges.out, whose spans are destinations, they are the sources of in-edges.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "storage/base/aligned_vector.h"
#include "storage/format/edge_layout.h"

namespace ooc {

// Keeps its memory from chunk to chunk. One thread builds, many read.
class NeighbourLists {
 public:
  // Of the span's vertices v with asks[v] = 1; the others' are 0 and their lists empty. `tiles`: of
  // one chunk of the span, or of several beside each other. `names`: by vertex of the graph, below
  // 2^32, by which lists are sorted; empty: as the tiles have them.
  void build(const EdgeLayout& layout, std::span<const PanelTile> tiles,
             std::span<const std::uint8_t> asks, std::span<const std::uint32_t> names);

  // Ascending, by name where there are names; parallel edges beside each other.
  std::span<const std::uint32_t> neighbours(std::int64_t vertex) const {
    return list(neighbours_, vertex);
  }
  // Beside them, where edges carry something: the edge's number in the tiles.
  std::span<const std::uint32_t> edges(std::int64_t vertex) const { return list(edges_, vertex); }
  std::int64_t size() const { return size_; }

 private:
  std::span<const std::uint32_t> list(const AlignedVector<std::uint32_t>& of,
                                      std::int64_t vertex) const {
    const auto at = static_cast<std::size_t>(vertex);
    return {of.data() + begins_[at], begins_[at + 1] - begins_[at]};
  }
  void find(const EdgeLayout& layout, std::span<const PanelTile> tiles,
            std::span<const std::uint8_t> asks);
  void sort(std::int64_t span_rows);
  void sort_by_name(std::span<const std::uint32_t> names);

  std::int64_t size_ = 0;
  bool has_edges_ = false;
  // As they are found.
  AlignedVector<std::uint16_t> found_vertices_;
  AlignedVector<std::uint32_t> found_neighbours_, found_edges_;
  // By vertex.
  std::vector<std::uint32_t> begins_;
  AlignedVector<std::uint32_t> neighbours_, edges_;
  std::vector<std::uint64_t> order_;  // of a list: name, place
  std::vector<std::uint32_t> list_;
};

}  // namespace ooc
