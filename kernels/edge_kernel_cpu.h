// The CPU's edge programs: batches of edges, loaded, computed and folded in a worker's scratch.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/edge_program.h"
#include "kernels/matrix_view.h"

namespace ooc::cpu {

std::unique_ptr<EdgeKernel> make_edge_kernel(const EdgeProgram& program);

// The edges at hand: the row of each inside its block, the neighbour inside its span.
struct EdgeBatch {
  std::int64_t count = 0;
  std::int32_t* rows = nullptr;
  std::int32_t* neighbours = nullptr;
};

// Folds of a batch into accumulators, edge after edge. Views of values have a row an edge, views of
// accumulators a row a vertex of the block (kernels/edge_program.h says what they hold).
template <class T>
void fold_sum(const EdgeBatch& batch, const MatrixView& x, const MatrixView& y);
template <class T>
void fold_max(const EdgeBatch& batch, const MatrixView& x, const MatrixView& keys,
              const MatrixView& y, const MatrixView& winner);
template <class T>
void fold_softmax(const EdgeBatch& batch, const MatrixView& score, const MatrixView& x,
                  const MatrixView& y, const MatrixView& max, const MatrixView& sum);

}  // namespace ooc::cpu
