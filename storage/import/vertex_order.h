// New numberings of the vertices. An order is a permutation given as the old id of each new one
// (what a dataset's "ids" file holds).
#pragma once

#include <cstdint>
#include <vector>

#include "storage/edge_file.h"

namespace ooc {

enum class VertexOrder { kNatural, kRandom, kDegree, kBalanced };

// Every vertex id once, shuffled; the same for the same seed everywhere.
std::vector<VertexId> random_order(std::int64_t vertices, std::uint64_t seed);

// By in- and out-degree together, largest first, ties by id.
std::vector<VertexId> degree_order(const std::vector<Edge>& edges, std::int64_t vertices);

// Blocks of `block_rows` carry about equally many in-edges: vertices are dealt by in-degree,
// largest first, each to the block with the fewest in-edges so far that still has room (after
// NGra).
std::vector<VertexId> balanced_order(const std::vector<Edge>& edges, std::int64_t vertices,
                                     std::int64_t block_rows);

// The new id of each old one.
std::vector<VertexId> inverse_order(const std::vector<VertexId>& order);

// Gives both ends of every edge their new ids. On all of TBB's threads.
void renumber_edges(std::vector<Edge>& edges, const std::vector<VertexId>& new_ids);

}  // namespace ooc
