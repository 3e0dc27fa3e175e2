// Operators between vertices and edges: what brings rows to edges, the gathers, and what layers say
// in terms of them.
#pragma once

#include <span>
#include <string>

#include "engine/graph/operators.h"
#include "engine/graph/tensor_graph.h"
#include "kernels/spec/row_kernels.h"

namespace ooc {

// Entries of the operator table:
//   source, destination  X[V,d] -> X[E,d]
//   edge_key             s[E,1] t[E,1] i[E,1] int64 -> K[E,3] int64: an edge's original ends and
//                        its number among parallel edges
//   winner_key           s[E,1] i[E,1] int64 -> K[E,1] int64: of an edge among those of one vertex
//   copy, copy_ids       X[V,d] -> X[V,d]: an input that edges read, where they can reach it
//   first_rows           X[V,d] of any type -> X[V,d]: the rows up to a lower level
//   extend_rows          X[V,d] of any type -> X[V,d]: rows up to a higher level, further ones zero
//   gather_sum           X[E,d] -> Y[V,d]
//   gather_max           X[E,d] K[E,1] -> Y[V,d], winner[V,d] int64. 0 where a vertex has no edge;
//                        ties go to the smallest original neighbour, then the first parallel edge
//   gather_softmax       score[E,h] X[E,d] -> Y[V,d] = sum of exp(score - max) X, max[V,h],
//                        sum[V,h] of exp(score - max); head i has columns [i d/h, (i+1) d/h).
//                        softmax_normalize, after it, passes the gradient of both back
std::span<const OperatorDef> edge_operators();

// What the edges of a dataset may carry (TensorGraph::edge_input), and what every edge has: its
// number among parallel edges, from 0.
inline constexpr const char* kEdgeWeightsInput = "edge_weights";           // E x 1, real or fp64
inline constexpr const char* kEdgeTypesInput = "edge_types";               // E x 1, int32
inline constexpr const char* kEdgeFeaturesInput = "edge_features";         // E x f, real
inline constexpr const char* kParallelIndexInput = "edge_parallel_index";  // E x 1, int64

// What kernels load for an edge input of this name.
EdgeLoad edge_load(const std::string& name);

// K of edge_key for all edges of the set.
TensorId edge_key(TensorGraph& graph, bool loops);

// As degree_factor() (engine/graph/row_operators.h) has it, with the sum of the edges' weights for
// their number; a loop that is added weighs 1. 0 where the sum is 0, of a root also where it is
// less. Sums are fp64: a vertex may have millions of edges.
TensorId weighted_degree_factor(TensorGraph& graph, DegreeFactor factor);

// Folds over the in-edges of every vertex, as layers name them: 0 where a vertex has none. A mean
// is the sum times `inverse_degree`.
TensorId gather_sum(TensorGraph& graph, TensorId edges, const std::string& name = "");
TensorId gather_mean(TensorGraph& graph, TensorId edges, TensorId inverse_degree,
                     const std::string& name = "");
TensorId gather_max(TensorGraph& graph, TensorId edges, const std::string& name = "");
TensorId gather_min(TensorGraph& graph, TensorId edges, const std::string& name = "");
// sum of softmax(score) X over a vertex's in-edges, head by head.
TensorId gather_softmax(TensorGraph& graph, TensorId score, TensorId edges,
                        const std::string& name = "");

}  // namespace ooc
