// The plan: the passes that an epoch's programs become, how each is split, and where its vertex
// tensors lie from pass to pass. Made before the first epoch (search/planner.h) from the programs,
// the graph's counts and a budget; the executor follows it and decides nothing.
//
// Tiers: storage, which holds every input and what the plan stores of produced tensors, and the
// arena, one allocation of the device's memory whose regions the plan hands out, pass by pass. What
// a pass works on lies in the arena: in a resident range, rows of a tensor that stay there from
// pass to pass, or in the memory of one of the pass's uses of it, through which rows stream by. On
// the CPU that is all: the device's memory is the host's. With any other device the host's memory
// is a tier between the two (HostTier): all that the arena takes in or gives out crosses the link
// to it, but for what devices pass on to each other.
//
// Source: the shape of passes is NGra's (§3.2, §4.1), the residency strategies `dp` and `lru` are
// ROC's (§5, Algorithm 1); `lp` is ours.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sched/plan/options.h"
#include "sched/plan/program.h"
#include "storage/format/edge_file.h"
#include "storage/format/tensor_layout.h"

namespace ooc {

// Bytes of the arena.
struct Region {
  std::int64_t offset = 0;  // multiple of 4 KiB
  std::int64_t bytes = 0;
};

// Which of the graph's rows a tensor has, beside each other: all, or those of so many of every four
// stretches, spread evenly. The steps make the others again: transfers and compute alternate.
struct StoredRows {
  std::int64_t quarters = 4;
  std::int64_t stretch =
      1;  // rows: whole steps and I/O chunks; a block of the graph's is whole ones

  bool all() const { return quarters == 4; }
  bool has(std::int64_t row) const { return before(row / stretch + 1) > before(row / stretch); }
  // Where a row lies in the tensor, or, if it isn't there, the next one that is.
  std::int64_t index(std::int64_t row) const {
    return before(row / stretch) * stretch + (has(row) ? row % stretch : 0);
  }

 private:
  // Of so many stretches.
  std::int64_t before(std::int64_t stretches) const { return ceil_div(stretches * quarters, 4); }
};

// A vertex tensor that lies in storage, or would: an input, or one that passes make for later ones.
// Inputs of one name are one tensor, whichever programs read them. Its blocks are the graph's, or,
// where these would be large, equal pieces of them (blocks_in()); of one that is kept
// in part, of the rows that are.
struct PlannedTensor {
  std::string name;
  TensorLayout layout;
  StoredRows kept = {};
  DType dtype = DType::kF32;         // as stored
  bool input = false;                // there before the epoch
  std::int64_t io_chunk_blocks = 1;  // blocks of an I/O chunk: what one transfer of a slice moves
  // What storage is expected to hold of its bytes: rows that no resident range holds when they are
  // made are written without their zeros (storage/format/zero_packing.h).
  double packed = 1;
};

// Of the graph's blocks, or a tensor's.
struct BlockRange {
  std::int64_t first = 0, end = 0;

  std::int64_t count() const { return end - first; }
  bool has(std::int64_t block) const { return first <= block && block < end; }
};

// Blocks [first_block, end_block) of a tensor, counted in its own, in memory, from the beginning of
// first_pass to the end of last_pass (counted over all sections; first_pass > last_pass: over the
// end of the epoch). The blocks come in by the first of these passes that touches them; from 0 to
// the last pass: they stay for good. Boundaries are multiples of the tensor's I/O chunk (or its
// end), and of what edges reach at once: one of the graph's blocks, of a streamed tensor a span.
// Memory: slice after slice, I/O chunk after I/O chunk, each I/O chunk at a multiple of 4 KiB
// (io_chunk_bytes()). It may be that of another tensor's range of the same blocks, whose last pass
// reads each row before it makes the one of this resident range, which begins with that pass.
struct ResidentRange {
  int tensor = -1;
  std::int64_t first_block = 0, end_block = 0;
  Region memory;
  int first_pass = 0, last_pass = 0;
};
bool is_alive(const ResidentRange& range, int pass);  // during the pass

// Edge chunks [first_chunk, end_chunk) of a direction's file in memory, those of some panels, each
// at a multiple of 4 KiB, from the first epoch on. In the arena first_chunk is 0.
struct EdgeRange {
  Direction direction = Direction::kIn;
  std::int64_t end_chunk = 0;
  Region memory;
  std::int64_t first_chunk = 0;
  std::int64_t first_panel = 0, end_panel = 0;
};

// The host's memory below a device: an arena of its own. What the device reads comes from a
// resident range here, or from storage: into the resident range that holds it in that pass, or
// through a staging slot. What it gives out goes into a resident range, or through a staging slot,
// and on to storage where the plan says so. Ranges are as the device's (ResidentRange), but begin
// above what the device holds for good, often at several places of a tensor at once; their
// boundaries are multiples of the I/O chunk, or its end.
struct HostTier {
  std::vector<ResidentRange> ranges;
  std::vector<EdgeRange> edge_ranges;
  // By tensor, of produced ones: blocks from here on are written to storage; others that leave a
  // device live in the host's ranges until their last use. A multiple of io_chunk_blocks, or
  // block_count.
  std::vector<std::int64_t> stored_from_block;
  // Slots of the largest I/O chunk of a slice or edge chunk that crosses the link.
  Region staging;
  std::int64_t staging_slots = 0;
  std::int64_t arena_bytes = 0;
};

enum class UseRole {
  kStreamed,     // read span by span, once for each destination range and group of slices
  kResident,     // rows of the destination range's vertices, read at the edges: loaded before the
                 // first span
  kAccumulator,  // folded into; of the destination range's vertices
  kRows,         // read by the row-wise steps, in the order of rows
  kOutput,       // written by the row-wise steps
};

// One use of a vertex tensor by a pass.
struct TensorUse {
  UseRole role = UseRole::kRows;
  ValueId value = -1;  // of the section's program
  int tensor = -1;     // of the plan; -1: of this destination range only, neither stored nor kept
                       // (accumulators)
};

enum class PassKind { kRow, kPropagate };

// The place of a value that lives within one row group, in a worker's scratch.
struct Scratch {
  ValueId value = -1;
  std::int64_t offset = 0;
  bool converted = false;  // an input: its rows are converted from the type they are stored in
};

// One streaming loop over chunks. A propagation runs for each group of slices, in it for each
// destination range, in it for each window of spans and group of blocks; after a destination
// range's last span the steps run over the destination range's blocks, perhaps beside the next
// destination range's spans. A row pass runs its steps over all blocks.
struct Pass {
  std::string name;
  PassKind kind = PassKind::kRow;
  Propagation propagation;  // kPropagate; with splits only where passing over edges pays

  std::int64_t dst_range_blocks = 0;  // the graph's blocks of a destination range, a multiple of
                                      // what is stored of sums in one I/O chunk
  std::int64_t dst_ranges = 1;        // of the device that has the most blocks
  // In memory: of two, one goes through the steps, or out, while the next one is folded.
  std::int64_t dst_ranges_at_once = 1;
  std::int64_t slices_at_once = 0;  // of a slice-local propagation; where not all, no steps follow
  std::int64_t span_group = 1;      // spans whose tiles a block takes at once (SpanWindows)
  std::int64_t group_blocks = 0;    // blocks that take the same ones, of one panel
  std::int64_t batch_edges = 0;     // edges whose values are in a worker's scratch at once
  std::int64_t slice_local_cols = 0;    // > 0: the propagation runs a slice at a time
  std::int64_t edge_scratch_bytes = 0;  // per worker, for the edges

  std::vector<RowStep> steps;  // the row-wise work, block after block
  std::vector<bool>
      skipped;  // by step: not done for rows that are kept (StoredRows); empty: none is
  std::vector<TensorUse> uses;      // every vertex tensor that it touches in memory
  std::vector<Scratch> scratch;     // converted inputs, and values of one row group only
  std::vector<ValueId> reductions;  // summed by the steps
  // Partial sums of each that are alive at once at most, by the steps and at the edges.
  std::int64_t row_partials = 0, edge_partials = 0;
  // Row groups of a call, where a device takes many at once (ComputeShape::lanes): each has
  // scratch, and a partial of each sum, of its own. 0: a call is a group.
  std::int64_t lanes = 0;
  std::int64_t batch_steps = 1;  // that begin together
  std::int64_t group_rows = 0;   // rows of a row group: the unit of compute, a leaf of reductions
  // Rows that the steps take up at once: the smallest block of what they read as kRows, or write.
  std::int64_t step_rows = 0;
  std::int64_t scratch_bytes = 0;  // per worker

  // Of an epoch after the first.
  std::int64_t bytes_read = 0;  // from storage
  std::int64_t bytes_written = 0;
  std::int64_t bytes_to_device = 0;  // over the links of all devices; 0 without a HostTier
  std::int64_t bytes_from_device = 0;
  std::int64_t bytes_between_devices = 0;  // round their ring
  // What it moves between memory and caches at most: rows of vertex tensors at the edges, edge
  // values that don't stay in cache, rows of vertex tensors in the row-wise work.
  std::int64_t bytes_moved = 0;
  double multiply_adds = 0;   // of its matrix products
  std::int64_t launches = 0;  // of kernels on a GPU
  // Predicted: of its transfers, of its compute on all workers, and of both as they overlap.
  double transfer_seconds = 0;
  double compute_seconds = 0;
  double seconds = 0;
  // Of compute, what one device would take for all edges, and for all rows, of the graph.
  double edge_seconds = 0, row_seconds = 0;
};

// What one program becomes.
struct Section {
  std::vector<Pass> passes;
  std::vector<int> tensors;  // by value; -1: not in storage
  int first_pass = 0;        // its first pass, counted over all sections
};

// Memory that a device gives to a use of a pass, or to its edge chunks.
struct UseMemory : Region {
  std::int64_t slots = 0;  // where there are slots; 0: all of it is in resident ranges
};

// A pass's memory on a device, beside what ranges hold.
struct PassMemory {
  // By Pass::uses, for the rows that no resident range holds. kStreamed, kRows, kOutput: slots of
  // the largest item. An item of kStreamed is streamed_blocks() of the slices at hand; of the
  // others a slice of an I/O chunk, and those of all its slices are taken together. kResident,
  // kAccumulator: for each of Pass::dst_ranges_at_once the rows of a destination range from its
  // first block on that is in no resident range (rounded down to an I/O chunk), of the slices at
  // hand, laid out as a resident range is. Without a tensor: as one of I/O chunks of a block
  // (dst_range_tensor()).
  std::vector<UseMemory> uses;
  UseMemory edges;        // of edge chunks that no edge range holds: slots of the largest
  Region worker_scratch;  // of all workers or lanes, of rows or edges, one after the other
};

// What is a device's own: the rows that it makes, its arena, and what lies there when.
struct DevicePlan {
  // The graph's blocks whose rows it makes, of every tensor, and into which it folds edges. Ranges
  // hold no other rows where there are several devices: what edges read span by span comes through
  // slots.
  BlockRange own;
  // By tensor, of produced ones: of its own blocks those from here on leave the arena, for the
  // host's memory where there is a HostTier, else for storage; those before never do, since they
  // stay until their last use. A multiple of io_chunk_blocks, or the tensor's block_count.
  std::vector<std::int64_t> stored_from_block;
  std::vector<ResidentRange> ranges;
  std::vector<EdgeRange> edge_ranges;
  std::vector<PassMemory> passes;  // counted over all sections
  std::int64_t arena_bytes = 0;
  std::int64_t reduction_bytes = 0;  // beside the arena, for partial sums
  // Of an epoch after the first, over its link to the host, and from the device before it in the
  // ring.
  std::int64_t bytes_in = 0, bytes_out = 0, bytes_passed_on = 0;
};

// Passes, their splits and groups of slices are common to all devices.
struct Plan {
  Strategy strategy = Strategy::kLp;
  std::vector<PlannedTensor> tensors;
  std::vector<Section> sections;    // in the order in which an epoch runs them
  std::vector<DevicePlan> devices;  // in the order of their blocks; one: of the CPU, or any other
  std::int64_t ring_loaders = 0;    // 0: there is no ring
  std::optional<HostTier> host;     // below devices with memory of their own
  std::int64_t stored_bytes = 0;    // of files for produced tensors

  // Of an epoch after the first that runs every section.
  std::int64_t bytes_read = 0;
  std::int64_t bytes_written = 0;
  std::int64_t bytes_to_device = 0;
  std::int64_t bytes_from_device = 0;
  std::int64_t bytes_between_devices = 0;
  std::int64_t bytes_moved = 0;
  std::int64_t launches = 0;
  double seconds = 0;
  // What the linear program over this pass list comes to with the smallest slots: no plan for it
  // moves fewer bytes or takes less time. With a HostTier the bytes are those to and from storage,
  // as if both memories were one, and bound_link_bytes those over the link.
  std::int64_t bound_bytes = 0;
  std::int64_t bound_link_bytes = 0;
  double bound_seconds = 0;
  std::string remark;  // such as why a strategy isn't exact here
};

int pass_count(const Plan& plan);                     // over all sections
std::int64_t partial_bytes(const Value& sum);         // of one: padded to 64
std::int64_t worker_scratch_bytes(const Pass& pass);  // of one: whole pages of its own
std::int64_t scratch_bytes(const Pass& pass, std::int64_t workers);  // all of the pass's

}  // namespace ooc
