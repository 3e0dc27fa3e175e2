// The CPU's edge programs: batches of edges, loaded, computed and folded in a worker's scratch.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/edges/edge_batch.h"
#include "kernels/spec/edge_program.h"
#include "kernels/spec/matrix_view.h"

namespace ooc::cpu {

// `kernels`: of its steps.
std::unique_ptr<EdgeWork> make_edge_work(const EdgeProgram& program,
                                         std::vector<RowKernel> kernels);

// Folds of a batch into accumulators (sums: kernels/edges/gather_cpu.h), edge after edge; a
// maximum, which no order changes, row after row. Views of values have a row an edge, views of
// accumulators a row a vertex of the block (kernels/spec/edge_program.h says what they hold).
template <class T>
void fold_max(const EdgeBatch& batch, const MatrixView& x, const MatrixView& keys,
              const MatrixView& y, const MatrixView& winner);
template <class T>
void fold_softmax(const EdgeBatch& batch, const MatrixView& score, const MatrixView& x,
                  const MatrixView& y, const MatrixView& max, const MatrixView& sum);

}  // namespace ooc::cpu
