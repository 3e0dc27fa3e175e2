// What import does to an edge list (merging duplicates, adding reverse edges, self loops) and what
// it finds on the way. Applied by the join of both directions (storage/edges/edge_join.h).
#pragma once

#include <cstdint>

namespace ooc {

enum class SelfLoops { kKeep, kAddRemaining, kDrop };

// What becomes of edges with the same source, destination and type: one edge with the first's data,
// or with the sum, mean or maximum of weights and features. Without data every choice but kKeep is
// the same.
enum class Coalesce { kKeep, kFirst, kSum, kMean, kMax };

// In this order:
//   coalesce;
//   undirected: each missing reverse edge is added once and carries what the first of the edges
//     carries whose reverse it is; a self loop and a pair joined both ways get nothing;
//   self loops: kAddRemaining gives one to each vertex without, of weight 1, type 0, features 1.
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
  void add(const EdgeFindings& other) {
    edges += other.edges;
    self_loops += other.self_loops;
    duplicates += other.duplicates;
    distinct += other.distinct;
    reciprocal += other.reciprocal;
  }
};

}  // namespace ooc
