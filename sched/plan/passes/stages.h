// What planning needs to know of one stage: see passes.h.
#pragma once

#include <set>
#include <vector>

#include "sched/plan/plan.h"

namespace ooc {

// Vertex values of a program that can't stay in a worker's scratch: those that cross stages,
// accumulators, and outputs; and the last stage that reads each value (-1: none does).
struct Lifetimes {
  std::set<ValueId> in_memory;
  std::vector<int> last;
};
Lifetimes lifetimes_of(const Program& program, const GraphCounts& graph);

// Rows of a row group, such that a few values of the widest kind fit a worker's scratch. They
// depend on the programs' widths and the block size alone, so that reductions, and with them
// results, depend neither on the plan, nor on what is computed again or in which of the programs,
// nor on the type that inputs are stored in.
std::int64_t choose_group_rows(const std::vector<const Program*>& programs, std::int64_t block_rows,
                               const ComputeShape& compute);
// The row-wise work of a stage: steps, scratch, reductions; `in_memory` as above.
Pass make_row_work(const Program& program, const Stage& stage, const std::set<ValueId>& in_memory,
                   const GraphCounts& graph, std::int64_t group_rows);
// Adds the edge work to it; decides whether it passes over edges outside the train split.
void add_edge_work(const Program& program, const Propagation& propagation, const GraphCounts& graph,
                   const PlanOptions& options, Pass& pass);
// Of a propagation that reads this direction, on a device that indexes edges: room for as many
// chunks at once as pays, or as a small part of the memory takes; at least for the largest.
std::int64_t index_scratch_bytes(const GraphCounts& graph, Direction direction,
                                 const PlanOptions& options);
// Of all edges, the share that the propagation takes if its splits have it pass over some.
double edge_share(const Propagation& propagation, const GraphCounts& graph);
// Of one edge: bytes between memory and caches, and multiply-adds.
std::int64_t bytes_of_edge(const Program& program, const Propagation& propagation, bool fuse);
// A row's multiply-adds in the steps' matrix products.
double row_multiply_adds(const Program& program, const std::vector<RowStep>& steps);
// What a row's product with a matrix counts for: its multiply-adds, and for each element that is
// read or written what takes as long as some more. Narrow products wait for their rows
// (bench/notes/kernels.md).
inline double product_work(std::int64_t rows, std::int64_t cols) {
  constexpr double kElement = 12;
  return static_cast<double>(rows * cols) + kElement * static_cast<double>(rows + cols);
}
struct ProductWork {
  double products = 0;
  double sums = 0;  // over rows
};
ProductWork row_product_work(const Program& program, const std::vector<RowStep>& steps);
// What a core fetches and puts back for all edges, if their ends are drawn evenly; with so many
// spans at once.
double gather_bytes(const Program& program, const Pass& pass, const GraphCounts& graph,
                    std::int64_t spans);
// What a row takes in steps that are no matrix products: in bytes read and written, or, where that
// isn't what counts, in elements of dropout (kernels/spec/row_kernels.h).
double row_dropout_elements(const Program& program, const std::vector<RowStep>& steps);
double row_elementwise_bytes(const Program& program, const std::vector<RowStep>& steps);

bool is_converted(const Value& value, const GraphCounts& graph);
DType stored_dtype(const Value& value, const GraphCounts& graph);

}  // namespace ooc
