// What a propagation does with the edges of one destination block: a small program over edge
// values.
//
// Edges are taken in batches. For a batch, the program's inputs are loaded (rows of vertex tensors,
// what the edges carry), its steps run - row operators whose rows are the batch's edges - and its
// folds add the batch to the accumulators. No edge value outlives its batch. Where the program is
// slice-local, all of it runs for one slice of the vertex tensors at a time.
//
// In a program over edges.in the vertex that folds is the destination and its neighbours are the
// sources; over edges.out it is the other way round.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/spec/matrix_view.h"
#include "kernels/spec/operator.h"
#include "storage/format/edge_layout.h"
#include "storage/format/tile.h"

namespace ooc {

// Where an edge value's rows come from.
enum class EdgeLoad {
  kStreamed,       // a vertex tensor's row of the neighbour
  kResident,       // a vertex tensor's row of the vertex that folds
  kWeights,        // what the edge carries: real or fp64, 1 column
  kTypes,          // int32, 1 column
  kFeatures,       // real
  kParallelIndex,  // int64, 1 column: how many edges with the same ends come before it
};

// How rows of edges become a row of their vertex. Accumulators of zero bytes mean: no edges yet.
//   kSum      inputs X[d]              -> Y[d] += X, of one type: real or fp64
//             inputs X[d], F[1]        -> Y[d] += F X, the product rounded before it is added
//   kMax      inputs X[d], E[1] int64  -> Y[d] largest, W[d] int64: winner_key() of the edge it is
//             from (kernels/spec/edge_coordinates.h). Ties go to the smallest key; NaNs win over
//             everything
//   kSoftmax  inputs S[h], X[d]        -> Y[d] = sum of exp(S - M) X head by head, M[h] the largest
//             S, Z[h] = sum of exp(S - M): the running form (Milakov and Gimelshein 2018). h <= 32
enum class Fold { kSum, kMax, kSoftmax };

struct EdgeProgram {
  struct Shape {
    std::int64_t cols = 0;
    DType dtype = DType::kF32;
  };
  struct Load {
    EdgeLoad load = EdgeLoad::kStreamed;
    int operand = -1;  // index into `streamed` or `resident`
    int value = -1;    // index into `values`
  };
  // An operand of a step: an edge value or a matrix.
  struct Operand {
    bool is_matrix = false;
    int index = -1;  // into `values` or `matrices`
  };
  struct Step {
    std::string op;
    std::vector<Operand> inputs;
    Operand output;  // a matrix: a reduction, added to
    Attributes attributes;
  };
  struct FoldStep {
    Fold fold = Fold::kSum;
    std::vector<int> inputs;        // into `values`
    std::vector<int> accumulators;  // into `accumulators`
  };
  struct Matrix {
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    DType dtype = DType::kF32;
  };

  DType real = DType::kF32;
  std::vector<Shape> streamed, resident, accumulators;  // vertex tensors
  std::vector<Shape> values;                            // of the edges of a batch
  std::vector<Matrix> matrices;                         // parameters, reductions read and summed
  std::vector<Load> loads;
  std::vector<Step> steps;
  std::vector<FoldStep> folds;
  // A streamed operand of splits (uint8, one column): edges whose neighbour isn't in the train
  // split are passed over, and neither their rows nor their accumulators are touched. -1: every
  // edge is taken.
  int splits = -1;
  std::int64_t batch_edges = 0;
  // Columns of the tensors that are taken slice by slice; 0: none are. Values, operands and
  // matrices of so many columns are then seen a slice at a time, others in full.
  std::int64_t slice_local_cols = 0;
};

// A program without steps that sums rows of neighbours, as they are or times the edges' weights: it
// needs no batches where it takes every edge, and no edge values.
bool is_plain_sum(const EdgeProgram& program);

// Of the scratch: one edge value's, slice after slice, each padded to 64 bytes.
std::int64_t edge_value_bytes(const EdgeProgram& program, int value);
// Bytes of scratch a worker needs to run it.
std::int64_t edge_scratch_bytes(const EdgeProgram& program);

// Edges to fold: those from some spans into some destination blocks of one panel, and where their
// operands lie. An address is that of row 0 of a span or a block, or without data where the block
// has none; of what is taken slice by slice it is first_slice's.
struct EdgeWindow {
  struct Span {
    // The edge chunk as it lies: its headers are its directory. Empty: no edges.
    std::span<const std::byte> chunk;
    // Likewise, in order of blocks, where the host has read the directory
    // (ComputeShape::host_tiles).
    std::span<const PanelTile> tiles;
  };

  const EdgeLayout* layout = nullptr;
  bool begins = false;  // accumulators hold nothing yet
  std::int64_t first_span = 0;
  std::vector<Span> spans;
  std::int64_t first_block = 0, end_block = 0;
  std::int64_t first_slice = 0, end_slice = 1;
  std::vector<SlicedRows> streamed;                // span after span, operand after operand
  std::vector<SlicedRows> resident, accumulators;  // block after block, operand after operand
  std::vector<void*> matrices;                     // by matrix; null: it is summed
  std::vector<void*> partials;  // block after block, those that are summed, by matrix
  // A bit a vertex: those without one get an edge from themselves after their own span's. Null: no
  // edges are added.
  const std::uint64_t* self_loops = nullptr;
  StepSeed state;

  std::int64_t end_span() const { return first_span + std::ssize(spans); }
};

// What is run of a window at once, and a lane's scratch: edge_scratch_bytes(), or, on a device that
// indexes edges, room for the index of any of the chunks (kernels/spec/compute_shape.h).
struct EdgeCall {
  std::int64_t first_block = 0, end_block = 0;
  std::int64_t first_slice = 0, end_slice = 1;
  std::span<std::byte> scratch = {};
};

// A program made ready for a device. Rows accumulate in (span, tile, edge) order, whatever the
// windows and calls. run() takes what window and call hold before it returns; only device memory
// stays as it is until the device has passed.
// Threads: run() may be called from many at once, for different blocks or slices of a window.
class EdgeWork {
 public:
  virtual ~EdgeWork() = default;
  virtual void run(const EdgeWindow& window, const EdgeCall& call) const = 0;
};

}  // namespace ooc
