// The first half of planning: which passes stages become and which vertex tensors those touch,
// given how each propagation is split. Nothing here depends on memory.
#pragma once

#include <set>
#include <vector>

#include "sched/plan/plan.h"
#include "storage/base/control.h"

namespace ooc {

// How a propagation is split; 0: not at all, or as memory is left for it.
struct PassSplit {
  std::int64_t dst_range_blocks = 0;
  std::int64_t slices_at_once = 0;
  std::int64_t dst_ranges_at_once = 1;
  std::int64_t slot_spans = 0;  // held at once of what it streams, where they fit: at least so many

  bool operator==(const PassSplit&) const = default;
};

// What a stage is, however it is split.
struct StageShape {
  int section = 0;
  Pass pass;                             // all but its uses, splits and memory
  Direction edge_file = Direction::kIn;  // that the propagation reads
  std::int64_t slices = 1;               // groups of slices that a propagation can be split into
  std::vector<ValueId> streamed, resident, accumulators;  // at the edges
  std::vector<ValueId> edge_reductions;
  std::vector<ValueId> reads, writes;  // of the steps, in memory
  // Of what lives in scratch, values of which some rows are kept (PlanOptions::kept_quarters):
  // those that later stages make again, and those that this one makes again.
  std::vector<ValueId> made_partly;
  std::vector<Rematerialized> read_partly;
  std::vector<RowStep> skipped_steps;  // not done for these rows, of which there are so many
  double skipped_rows = 0;
  std::set<ValueId> kept;        // accumulators and writes that later stages or callers read
  double edge_bytes_moved = 0;   // of all edges
  double elementwise_bytes = 0;  // of all rows
  double edge_multiply_adds = 0, row_multiply_adds = 0;  // of all edges; of all rows
};

// A use without its memory.
struct UseDraft {
  UseRole role = UseRole::kRows;
  ValueId value = -1;
  int tensor = -1;
  bool sliced = false;  // only the slices at hand
};

struct PassDraft {
  int stage = 0;
  bool edges = false;  // the propagation
  bool rows = false;   // the steps
  std::int64_t dst_range_blocks = 0, dst_ranges = 1;
  std::int64_t slices_at_once = 1, groups = 1;
  std::int64_t dst_ranges_at_once = 1;
  std::int64_t slot_spans = 0;
  std::vector<UseDraft> uses;

  // In all groups of slices.
  std::int64_t dst_range_count() const { return dst_ranges * groups; }
};

// Passes in the order of an epoch, over all sections.
struct Draft {
  std::vector<PlannedTensor> tensors;
  std::vector<PassDraft> passes;
  std::vector<std::vector<int>> value_tensors;  // by section and value
  std::vector<int> section_first;               // by section: its first pass; and their number
  int pass_count() const { return static_cast<int>(passes.size()); }
};

// The blocks that a device makes, where it is the only one, or one of several.
struct DeviceShare {
  BlockRange own;
  bool alone = true;
  std::int64_t ring_loaders = 0;  // of several: 0: no ring
  std::int64_t index = 0;         // of several: its position

  // In blocks of a tensor, whole I/O chunks: those of an input may hold rows of others.
  BlockRange blocks_of(const EdgeLayout& edges, const PlannedTensor& tensor) const;
};

class PassBuilder {
 public:
  // Passes are split for the device of `own`, the one that has the most blocks, or for one that has
  // all. The programs must outlive it.
  PassBuilder(const std::vector<const Program*>& programs, const GraphCounts& graph,
              const PlanOptions& options, const BlockRange& own);
  PassBuilder(const std::vector<const Program*>& programs, const GraphCounts& graph,
              const PlanOptions& options)
      : PassBuilder(programs, graph, options, {0, graph.edges.block_count()}) {}

  DeviceShare share() const;
  // Of all rows and of all edges, what that device has.
  double row_share() const;
  double edge_share() const;
  const std::vector<StageShape>& stages() const { return stages_; }
  const GraphCounts& graph() const { return graph_; }
  const PlanOptions& options() const { return options_; }
  // Wherever planning may go on for long.
  void check_stop() const { Control{{}, options_.stop}.check(); }
  const Program& program(int section) const {
    return *programs_[static_cast<std::size_t>(section)];
  }
  const Value& value(const StageShape& stage, ValueId id) const {
    return program(stage.section).values[static_cast<std::size_t>(id)];
  }

  Draft draft(const std::vector<PassSplit>& splits) const;  // by stage
  // The passes with all but memory and predictions.
  std::vector<Section> sections(const Draft& draft) const;
  // Rows that a pass takes up at once in its row-wise steps.
  std::int64_t step_rows(const Draft& draft, const PassDraft& pass) const;
  std::int64_t scratch_bytes(const PassDraft& pass) const;  // of all workers, or lanes
  std::int64_t lanes(const PassDraft& pass) const;          // Pass::lanes
  // Of the sums of all passes.
  std::int64_t reduction_bytes(const Draft& draft) const;
  // Of each sum of a pass's steps, and of those at its edges.
  std::int64_t row_partials(const Draft& draft, const PassDraft& pass) const;
  std::int64_t edge_partials(const PassDraft& pass) const;

 private:
  std::int64_t group_count(const StageShape& stage) const;
  std::int64_t partials_of_others(std::int64_t leaves) const;
  void split_stage(Draft& draft, int stage, PassSplit split) const;
  void add_edge_uses(Draft& draft, const StageShape& stage, PassDraft& pass) const;
  void add_row_uses(Draft& draft, const StageShape& stage, PassDraft& pass) const;
  void keep_partly(int section, const std::set<ValueId>& in_memory);
  PlannedTensor describe_tensor(int section, ValueId id) const;
  std::int64_t most_io_chunk_blocks(const PlannedTensor& tensor) const;
  int tensor_of(Draft& draft, int section, ValueId id) const;
  int kept_tensor_of(Draft& draft, int section, ValueId made) const;

  std::vector<const Program*> programs_;
  const GraphCounts& graph_;
  const PlanOptions& options_;
  BlockRange own_;
  std::vector<StageShape> stages_;
  std::vector<StoredRows> kept_;  // by section: of what is kept in part
};

}  // namespace ooc
