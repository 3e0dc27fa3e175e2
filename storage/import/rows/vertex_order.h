// New numberings of the vertices. An order is a permutation given as the old id of each new one
// (what a dataset's "ids" file holds). Memory: 4 bytes a vertex for it, and what is said below.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "storage/dataset/edge_output.h"
#include "storage/format/edge_key.h"

namespace ooc {

enum class VertexOrder { kNatural, kRandom, kDegree, kBalanced, kMetis };

using VertexIndex = std::uint32_t;  // a vertex id; ids are below kMaxVertices

// Throws UsageError unless `block_rows` is a power of two within bounds.
void check_block_rows(std::int64_t block_rows);

// Every vertex id once, shuffled; the same for the same seed everywhere.
std::vector<VertexIndex> random_order(std::int64_t vertices, std::uint64_t seed);

// By in- and out-degree together (self loops count twice), largest first, ties by id.
std::vector<VertexIndex> degree_order(std::span<const Degrees> degrees);

// Blocks of `block_rows` carry about equally many in-edges: vertices are dealt by in-degree,
// largest first, each to the block with the fewest in-edges so far that still has room (after
// NGra).
std::vector<VertexIndex> balanced_order(std::span<const Degrees> degrees, std::int64_t block_rows);

// METIS's partition into as many parts as there are blocks, part after part, so that neighbours
// tend to share a block. `pairs` holds every two different vertices that an edge joins, both ways,
// grouped in any order; it is used up. The same on every machine with the same METIS. Throws
// UsageError where ids or edges exceed METIS's 32 bits.
std::vector<VertexIndex> metis_order(std::int64_t vertices, std::vector<Edge>& pairs,
                                     std::int64_t block_rows);
// Bytes that metis_order() takes, about.
std::int64_t metis_memory(std::int64_t vertices, std::int64_t pairs);

// The new id of each old one.
std::vector<VertexIndex> inverse_order(const std::vector<VertexIndex>& order);

// Gives both ends of every edge their new ids.
void renumber_edges(std::span<Edge> edges, std::span<const VertexIndex> new_ids);

}  // namespace ooc
