// What import does to an edge list: merging duplicates, adding reverse edges, self loops; and what
// it finds on the way.
//
// All of it works on one order, in which the edges of a pair of vertices are neighbours: sorted by
// (smaller id, larger id), first those from smaller to larger. One sort in place and linear passes
// need no memory beyond the edges that are added.
#pragma once

#include <cstdint>
#include <vector>

#include "storage/edge_file.h"
#include "storage/control.h"

namespace ooc {

enum class SelfLoops { kKeep, kAddRemaining, kDrop };
// Edges carry no weights, so every choice but kKeep merges equal edges into one.
enum class Coalesce { kKeep, kFirst, kSum, kMean, kMax };

struct EdgeTransforms {
  bool undirected = false;
  SelfLoops self_loops = SelfLoops::kKeep;
  Coalesce coalesce = Coalesce::kKeep;
};

// Of the edges as they were given.
struct EdgeFindings {
  std::int64_t edges = 0;
  std::int64_t self_loops = 0;  // duplicates count
  std::int64_t duplicates = 0;  // edges beyond the first from one vertex to another
  std::int64_t distinct = 0;    // different edges between different vertices
  std::int64_t reciprocal = 0;  // those of `distinct` whose reverse is there too

  double reciprocal_share() const {
    return distinct == 0 ? 0.0 : static_cast<double>(reciprocal) / static_cast<double>(distinct);
  }
};

// Applies, in this order: coalesce; undirected (each missing reverse edge is added once; a self
// loop or a pair joined both ways gets nothing); self loops (kAddRemaining: one for each of the
// `vertices` without). Leaves the edges in some deterministic order. Memory: one copy of the result
// where edges are added.
EdgeFindings transform_edges(std::vector<Edge>& edges, std::int64_t vertices,
                             const EdgeTransforms& transforms, const Control& control);

// Sorts as described above, on all of TBB's threads. Ids lie in [0, 2^62).
void sort_by_pair(std::vector<Edge>& edges);

// Vertices that no edge leads to.
std::int64_t count_without_in_edges(const std::vector<Edge>& edges, std::int64_t vertices);

}  // namespace ooc
