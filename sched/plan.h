// The plan: the passes that a program becomes and where its vertex tensors lie, with the bytes that
// follow. Made before the first epoch from the program and the dataset's counts alone; the executor
// follows it and decides nothing.
//
// The strategy here is the simplest one, "resident": every vertex tensor that a later pass needs
// stays in memory, at a place it shares with tensors of other lifetimes; dataset files are mapped.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "sched/program.h"
#include "storage/edge_file.h"
#include "storage/tensor_layout.h"

namespace ooc {

enum class PassKind { kRow, kPropagate };

// The place of a value that lives within one row group, in a worker's scratch.
struct Scratch {
  ValueId value = -1;
  std::int64_t offset = 0;
  bool converted = false;  // an input: its rows are converted from the type they are stored in
};

// One streaming loop over chunks.
struct Pass {
  std::string name;
  PassKind kind = PassKind::kRow;
  Propagation propagation;            // kPropagate
  std::int64_t span_group = 1;        // source spans whose tiles a destination block takes at once
  std::int64_t batch_edges = 0;       // edges whose values are in a worker's scratch at once
  std::int64_t slice_local_cols = 0;  // > 0: the propagation runs a slice at a time
  std::int64_t edge_scratch_bytes = 0;  // per worker, for the edges
  std::vector<RowStep> steps;           // the row-wise work, block after block
  std::vector<ValueId> tensors;         // inputs and resident tensors that the steps touch in place
  std::vector<Scratch> scratch;         // converted inputs, and values of one row group only
  std::vector<ValueId> reductions;      // summed by this pass
  std::int64_t group_rows = 0;     // rows of a row group: the unit of compute, a leaf of reductions
  std::int64_t scratch_bytes = 0;  // per worker
  std::int64_t bytes_read = 0;     // from the dataset's files
  // What it moves between memory and caches at most: rows of vertex tensors at the edges, edge
  // values that don't stay in cache, rows of vertex tensors in the row-wise work.
  std::int64_t bytes_moved = 0;
};

// The place of a resident tensor in the arena, and the passes between which it is there.
struct Residence {
  ValueId value = -1;
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  int first_pass = 0;
  int last_pass = 0;
};

struct Plan {
  std::string strategy = "resident";
  std::vector<Pass> passes;
  std::vector<Residence> residences;  // by value
  std::int64_t arena_bytes = 0;
  std::int64_t scratch_bytes = 0;  // per worker: the largest of the passes', of rows or edges
  std::int64_t bytes_read = 0;     // per run, from the dataset's files
  std::int64_t bytes_moved = 0;    // per run: the passes' together
};

// What the plan needs to know of a graph; `edge_bytes` are those of the files' edge chunks.
struct GraphCounts {
  EdgeLayout edges;
  std::int64_t edge_bytes_in = 0;
  std::int64_t edge_bytes_out = 0;
  std::set<std::string> memory_inputs = {};  // computed at start-up, not read from files
  // The type of inputs that may be stored in another than the program reads.
  std::map<std::string, DType> stored_dtypes = {};
};

// What a machine does in a second; the defaults are a desktop's.
struct MachineRates {
  double storage_read = 2e9;  // bytes
  double storage_write = 1.5e9;
  double memory = 10e9;         // bytes of Pass::bytes_moved, all workers together
  double multiply_adds = 5e10;  // all workers together
};

// Options that shape passes.
struct PlanOptions {
  std::int64_t span_group = 0;  // 0: all spans at once, since all of them are in memory
  // Edge values live in cache: small batches, a slice at a time. Otherwise each edge operator goes
  // over a large batch in memory before the next does.
  bool fuse_edges = true;
};

Plan make_plan(const Program& program, const GraphCounts& graph, const PlanOptions& options = {});

// Bytes of a vertex tensor in memory: slices one after the other, each padded to 64 bytes.
std::int64_t resident_bytes(const TensorLayout& layout, DType dtype);
// Where slice `slice` of it begins.
std::int64_t resident_slice_offset(const TensorLayout& layout, DType dtype, std::int64_t slice);

nlohmann::ordered_json plan_to_json(const Program& program, const Plan& plan);
// A table for people.
std::string plan_to_text(const Program& program, const Plan& plan);

}  // namespace ooc
