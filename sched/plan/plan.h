// The plan: the passes that an epoch's programs become, how each is split, and where its vertex
// tensors lie from pass to pass. Made before the first epoch from the programs, the graph's counts
// and a budget; the executor follows it and decides nothing.
//
// Tiers: storage, which holds every input and what the plan stores of produced tensors, and the
// arena, one allocation of the device's memory whose regions the plan hands out, pass by pass. What
// a pass works on lies in the arena: in a resident range, rows of a tensor that stay there from
// pass to pass, or in the memory of one of the pass's uses of it, through which rows stream by. On
// the CPU that is all: the device's memory is the host's. With any other device the host's memory
// is a tier between the two (HostTier): all that the arena takes in or gives out crosses the link
// to it.
//
// Source: the shape of passes is NGra's (§3.2, §4.1), the residency strategies `dp` and `lru` are
// ROC's (§5, Algorithm 1); `lp` is ours.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sched/plan/program.h"
#include "storage/format/edge_file.h"
#include "storage/format/tensor_layout.h"

namespace ooc {

// How it is decided what stays in memory between passes.
enum class Strategy {
  kNone,  // nothing does
  kLru,   // what was used last
  kDp,    // ROC's Algorithm 1: whole tensors
  kLp,    // an interval linear program: fractions of tensors
};

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
// where these would be large, equal destination ranges of them (blocks_in()); of one that is kept
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
  // Of a produced tensor: blocks from here on leave the arena, for the host's memory where there is
  // a HostTier, else for storage; those before it never do, since they stay until their last use. A
  // multiple of io_chunk_blocks, or block_count.
  std::int64_t stored_from_block = 0;
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

// Edge chunks [first_chunk, end_chunk) of a direction's file in memory, each at a multiple of 4
// KiB, from the first epoch on. In the arena first_chunk is 0.
struct EdgeRange {
  Direction direction = Direction::kIn;
  std::int64_t end_chunk = 0;
  Region memory;
  std::int64_t first_chunk = 0;
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
  // By tensor, of produced ones: blocks from here on are written to storage; those between
  // PlannedTensor::stored_from_block and here live in the host's ranges until their last use. A
  // multiple of io_chunk_blocks, or block_count.
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

// One use of a vertex tensor by a pass. Its memory holds the rows that no resident range holds.
struct TensorUse {
  UseRole role = UseRole::kRows;
  ValueId value = -1;  // of the section's program
  int tensor = -1;     // of the plan; -1: of this destination range only, neither stored nor kept
                       // (accumulators)
  // kStreamed, kRows, kOutput: slots, each of the largest item, `slots` of them: an item
  // is a slice of an I/O chunk; of kStreamed streamed_blocks() of the slices at hand. kResident,
  // kAccumulator: for each of Pass::dst_ranges_at_once the rows of a destination range from its
  // first block on that is in no resident range (rounded down to an I/O chunk), of the slices at
  // hand, laid out as a resident range is. Without a tensor: as one of I/O chunks of a block
  // (part_tensor()).
  Region memory;
  std::int64_t slots = 0;  // where there are slots; 0: all of it is in resident ranges
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
  std::int64_t dst_ranges = 1;
  // In memory: of two, one goes through the steps, or out, while the next one is folded.
  std::int64_t dst_ranges_at_once = 1;
  std::int64_t slices_at_once = 0;  // of a slice-local propagation; where not all, no steps follow
  std::int64_t span_group = 1;      // spans whose tiles a block takes at once (SpanWindows)
  std::int64_t group_blocks = 0;    // blocks that take the same ones, of one panel
  Region edge_slot_memory;          // of edge chunks, in slots of the largest
  std::int64_t edge_slots = 0;      // 0: all of them are in memory
  std::int64_t batch_edges = 0;     // edges whose values are in a worker's scratch at once
  std::int64_t slice_local_cols = 0;    // > 0: the propagation runs a slice at a time
  std::int64_t edge_scratch_bytes = 0;  // per worker, for the edges

  std::vector<RowStep> steps;  // the row-wise work, block after block
  std::vector<bool>
      skipped;  // by step: not done for rows that are kept (StoredRows); empty: none is
  std::vector<TensorUse> uses;      // every vertex tensor that it touches in memory
  std::vector<Scratch> scratch;     // converted inputs, and values of one row group only
  std::vector<ValueId> reductions;  // summed by the steps
  std::int64_t group_rows = 0;  // rows of a row group: the unit of compute, a leaf of reductions
  // Rows that the steps take up at once: the smallest block of what they read as kRows, or write.
  std::int64_t step_rows = 0;
  std::int64_t scratch_bytes = 0;  // per worker
  Region worker_scratch;           // of all workers, of rows or edges, one after the other

  // Of an epoch after the first.
  std::int64_t bytes_read = 0;  // from storage
  std::int64_t bytes_written = 0;
  std::int64_t bytes_to_device = 0;  // over the link; 0 without a HostTier
  std::int64_t bytes_from_device = 0;
  // What it moves between memory and caches at most: rows of vertex tensors at the edges, edge
  // values that don't stay in cache, rows of vertex tensors in the row-wise work.
  std::int64_t bytes_moved = 0;
  double multiply_adds = 0;  // of its matrix products
  // Predicted: of its transfers, of its compute on all workers, and of both as they overlap.
  double transfer_seconds = 0;
  double compute_seconds = 0;
  double seconds = 0;
};

// What one program becomes.
struct Section {
  std::vector<Pass> passes;
  std::vector<int> tensors;  // by value; -1: not in storage
  int first_pass = 0;        // its first pass, counted over all sections
};

struct Plan {
  Strategy strategy = Strategy::kLp;
  std::vector<PlannedTensor> tensors;
  std::vector<Section> sections;  // in the order in which an epoch runs them
  std::vector<ResidentRange> ranges;
  std::vector<EdgeRange> edge_ranges;
  std::int64_t arena_bytes = 0;
  std::optional<HostTier> host;      // below a device with memory of its own
  std::int64_t reduction_bytes = 0;  // of partial sums, at most
  std::int64_t stored_bytes = 0;     // of files for produced tensors

  // Of an epoch after the first that runs every section.
  std::int64_t bytes_read = 0;
  std::int64_t bytes_written = 0;
  std::int64_t bytes_to_device = 0;
  std::int64_t bytes_from_device = 0;
  std::int64_t bytes_moved = 0;
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
std::int64_t worker_scratch_bytes(const Pass& pass);  // of one: whole pages of its own
// Of a tensor's blocks [first, end): rows unpadded.
std::int64_t payload_bytes(const PlannedTensor& tensor, std::int64_t first, std::int64_t end);
bool lives_in(const ResidentRange& range, int pass);

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
  // ones, as plans count them (plan_stages.h: product_work).
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
  // The passes run on a device with memory of its own, of which the arena and the partial sums may
  // take so much, as memory_bytes and reserved_bytes say.
  bool device = false;
  std::int64_t device_memory_bytes = 0;
  std::int64_t device_reserved_bytes = 0;
  std::int64_t workers = 1;
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

// One section a program, in order. BudgetError where the least working set doesn't fit, naming the
// least budget that does, and the least whose epoch is predicted within twice the unlimited one's.
Plan make_plan(const std::vector<const Program*>& programs, const GraphCounts& graph,
               const PlanOptions& options = {});
// Nothing where it doesn't fit, which takes no search for what would. Bounds take as long as the
// rest, or longer: what is only compared does without.
enum class Bounds { kFound, kLeftOut };
std::optional<Plan> try_plan(const std::vector<const Program*>& programs, const GraphCounts& graph,
                             const PlanOptions& options = {}, Bounds bounds = Bounds::kFound);

// Bytes that an I/O chunk of a slice takes in storage and memory: a multiple of 4 KiB. The last I/O
// chunk has the rows that are left.
std::int64_t io_chunk_bytes(const PlannedTensor& tensor, std::int64_t io_chunk, std::int64_t slice);
std::int64_t io_chunk_count(const PlannedTensor& tensor);
// Of the rows in an I/O chunk, unpadded: what counts as moved.
std::int64_t io_chunk_payload(const PlannedTensor& tensor, std::int64_t io_chunk,
                              std::int64_t slice);
// Blocks of the tensor in one of the graph's.
std::int64_t blocks_in(const EdgeLayout& edges, const PlannedTensor& tensor);
// Of a tensor that edges read span by span, the blocks that come in at once: whole I/O chunks,
// whole spans.
std::int64_t streamed_blocks(const EdgeLayout& edges, const PlannedTensor& tensor);
// What the memory of a use without a tensor is laid out as.
PlannedTensor dst_range_tensor(const EdgeLayout& edges, const Value& value);

// Rows that lie beside each other from a block on, slices first_slice to end_slice: the layout of
// ranges and of kResident and kAccumulator memory.
std::int64_t rows_bytes(const PlannedTensor& tensor, std::int64_t first_block,
                        std::int64_t end_block, std::int64_t first_slice, std::int64_t end_slice);
// Where a row of a slice begins in it; first_block is a multiple of the I/O chunk.
std::int64_t row_offset(const PlannedTensor& tensor, std::int64_t first_block,
                        std::int64_t end_block, std::int64_t first_slice, std::int64_t row,
                        std::int64_t slice);

nlohmann::ordered_json plan_to_json(const std::vector<const Program*>& programs, const Plan& plan);
// Whether its sections run epoch after epoch, or once before them.
enum class PlanRuns { kEpochs, kOnce };
// A table for people.
std::string plan_to_text(const std::vector<const Program*>& programs, const Plan& plan,
                         PlanRuns runs = PlanRuns::kEpochs);

}  // namespace ooc
