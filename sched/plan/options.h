// What a plan is made from beside the programs: the graph's counts, the machine's rates, a budget.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "kernels/spec/compute_shape.h"
#include "storage/base/types.h"
#include "storage/format/edge_file.h"

namespace ooc {

// How it is decided what stays in memory between passes.
enum class Strategy {
  kNone,  // nothing does
  kLru,   // what was used last
  kDp,    // ROC's Algorithm 1: whole tensors
  kLp,    // an interval linear program: fractions of tensors
};

// What the plan needs to know of a graph.
struct EdgeBytes {
  std::int64_t bytes = 0;                   // of all edge chunks
  std::vector<std::int64_t> chunk_bytes{};  // by chunk; empty: not known, all alike
};
struct GraphCounts {
  EdgeLayout edges;
  EdgeBytes in, out;
  // Both directions read edges.in: `out` doesn't count, and what is kept is kept once.
  bool symmetric = false;
  // The type of inputs that may be stored in another than the program reads.
  std::map<std::string, DType> stored_dtypes = {};
  // Inputs that are no files of the dataset: their I/O chunks are those of produced tensors.
  std::set<std::string> produced_inputs = {};
  // In the train split; 0: not known.
  std::int64_t train_vertices = 0;
  // In-edges, by block of vertices; empty: not known, all alike.
  std::vector<std::int64_t> block_edges = {};
};

// By what the vertices are cut into the ranges of several devices.
enum class DevicePartition {
  kEqualEdges,  // in-edges are about the same
  kEqualVertices,
};

// What a machine does in a second, all workers together; the defaults are a desktop's.
struct MachineRates {
  double storage_read = 2e9;  // bytes
  double storage_write = 1.5e9;
  double to_device = 12e9;  // over the link, where there is one
  double from_device = 12e9;
  double storage_both = 2e9;  // read and written at once, together
  double gather = 4e10;       // bytes of rows at the edges
  // Bytes that row-wise steps read and write, but for matrix products and what is counted in
  // elements of dropout, of which so many (kernels/spec/row_kernels.h: work_of_element).
  double elementwise = 5e10;
  double dropout = 3e9;
  // Bytes of rows, with zeros, that those are left out of or put back into
  // (storage/format/zero_packing.h).
  double packing = 2e10;
  // Multiply-adds of rows with a matrix, and those of products that are summed over rows; of wide
  // ones, as plans count them (passes/stages.h: product_work).
  double multiply_adds = 6e10;
  double row_sums = 5.5e10;
};

// Options that shape passes.
struct PlanOptions {
  Strategy strategy = Strategy::kLp;
  // What the arena and the partial sums may take together; 0: no limit; below 0: what is reserved
  // already takes more than the budget. With `device` it is what the
  // HostTier's arena may take.
  std::int64_t memory_bytes = 0;
  // What else is charged to the budget, so that errors can name the budget.
  std::int64_t reserved_bytes = 0;
  // The passes run on devices with memory of their own, of which the arena and the partial sums may
  // take so much on each, as memory_bytes and reserved_bytes say.
  bool device = false;
  std::int64_t devices = 1;
  DevicePartition partition = DevicePartition::kEqualEdges;
  // Several devices pass on what edges read span by span (RingShape): so many of them, by which
  // their number can be divided, read it from the host; 0: each does.
  std::int64_t ring_loaders = 1;
  std::int64_t device_memory_bytes = 0;
  std::int64_t device_reserved_bytes = 0;
  std::int64_t workers = 1;   // of each device
  ComputeShape compute = {};  // of what the passes run on
  MachineRates rates = {};
  // Outputs of the programs are stored in full, for other plans to read.
  bool store_outputs = false;
  // For tests: these splits, where they are allowed; 0: the plan decides.
  std::int64_t dst_range_blocks = 0;
  std::int64_t slices_at_once = 0;
  std::int64_t span_group = 0;
  std::int64_t dst_ranges_at_once = 0;
  // Of what the programs repeat (Program::rematerialized), so many of every four rows are kept: 0
  // to 3.
  std::int64_t kept_quarters = 0;
  // Edge values live in cache: small batches, a slice at a time. Otherwise each edge operator goes
  // over a large batch in memory before the next does.
  bool fuse_edges = true;
  const std::atomic<bool>* stop = nullptr;  // set: planning ends, with Interrupted
};

}  // namespace ooc
