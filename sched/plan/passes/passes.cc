#include "sched/plan/passes/passes.h"

#include <algorithm>

#include "sched/plan/io_chunks.h"
#include "sched/plan/passes/stages.h"
#include "sched/workers/concurrency.h"
#include "storage/base/errors.h"

namespace ooc {
namespace {

void add_once(std::vector<ValueId>& list, ValueId id) {
  if (std::find(list.begin(), list.end(), id) == list.end()) list.push_back(id);
}

bool contains(const std::vector<ValueId>& list, ValueId id) {
  return std::find(list.begin(), list.end(), id) != list.end();
}

void describe_edges(const Program& program, const Propagation& propagation,
                    const GraphCounts& graph, const PlanOptions& options, StageShape& shape) {
  add_edge_work(program, propagation, graph, options, shape.pass);
  const Propagation& work = shape.pass.propagation;
  if (!graph.symmetric) shape.edge_file = work.direction;
  if (options.compute.indexes_edges) {
    shape.pass.edge_scratch_bytes = index_scratch_bytes(graph, shape.edge_file, options);
  }
  if (shape.pass.slice_local_cols > 0) {
    shape.slices = ceil_div(shape.pass.slice_local_cols, kSliceWidth);
  }
  for (const EdgeInput& input : work.inputs) {
    if (input.load == EdgeLoad::kStreamed) add_once(shape.streamed, input.vertex);
    if (input.load == EdgeLoad::kResident) add_once(shape.resident, input.vertex);
  }
  if (work.splits >= 0) add_once(shape.streamed, work.splits);
  for (const EdgeFold& fold : work.folds) {
    for (const ValueId id : fold.accumulators) add_once(shape.accumulators, id);
  }
  for (const RowStep& step : work.steps) {
    const ValueId output = step.outputs[0];
    const Value& value = program.values[static_cast<std::size_t>(output)];
    if (value.kind == ValueKind::kReduction) add_once(shape.edge_reductions, output);
  }
  const double edges = static_cast<double>(graph.edges.edges) * edge_share(work, graph);
  shape.edge_bytes_moved =
      edges * static_cast<double>(bytes_of_edge(program, work, options.fuse_edges));
  shape.edge_multiply_adds = edges * row_multiply_adds(program, work.steps);
}

void describe_rows(const Program& program, const Stage& stage, const Lifetimes& lives,
                   const GraphCounts& graph, StageShape& shape) {
  std::set<ValueId> reads, writes;
  for (const RowStep& step : stage.steps) {
    for (const ValueId id : step.outputs) {
      const Value& value = program.values[static_cast<std::size_t>(id)];
      if (value.kind == ValueKind::kVertex && lives.in_memory.contains(id)) writes.insert(id);
    }
  }
  for (const RowStep& step : stage.steps) {
    for (const ValueId id : step.inputs) {
      const Value& value = program.values[static_cast<std::size_t>(id)];
      const bool here = value.kind == ValueKind::kInput ||
                        (value.kind == ValueKind::kVertex && lives.in_memory.contains(id));
      if (here && !writes.contains(id)) reads.insert(id);
    }
  }
  shape.reads.assign(reads.begin(), reads.end());
  shape.writes.assign(writes.begin(), writes.end());
  shape.elementwise_bytes =
      static_cast<double>(graph.edges.vertices) * row_elementwise_bytes(program, stage.steps);
  shape.row_multiply_adds =
      static_cast<double>(graph.edges.vertices) * row_multiply_adds(program, stage.steps);
}

}  // namespace

PassBuilder::PassBuilder(const std::vector<const Program*>& programs, const GraphCounts& graph,
                         const PlanOptions& options, const BlockRange& own)
    : programs_(programs), graph_(graph), options_(options), own_(own) {
  const std::int64_t group_rows =
      choose_group_rows(programs, graph.edges.block_rows, options.compute);
  for (std::size_t section = 0; section < programs.size(); ++section) {
    const Program& program = *programs[section];
    const Lifetimes lives = lifetimes_of(program, graph);
    for (int i = 0; i < static_cast<int>(program.stages.size()); ++i) {
      const Stage& stage = program.stages[static_cast<std::size_t>(i)];
      StageShape& shape = stages_.emplace_back();
      shape.section = static_cast<int>(section);
      shape.pass = make_row_work(program, stage, lives.in_memory, graph, group_rows);
      if (stage.propagation) describe_edges(program, *stage.propagation, graph, options, shape);
      describe_rows(program, stage, lives, graph, shape);
      for (const std::vector<ValueId>* made : {&shape.accumulators, &shape.writes}) {
        for (const ValueId id : *made) {
          const bool later = lives.last[static_cast<std::size_t>(id)] > i;
          if (later || contains(program.outputs, id)) shape.kept.insert(id);
        }
      }
    }
    kept_.emplace_back();
    if (options.kept_quarters > 0) keep_partly(static_cast<int>(section), lives.in_memory);
  }
}

namespace {

// By step: whether it only leads to values that are read instead.
std::vector<bool> find_skipped(const Program& program, const StageShape& stage,
                               const std::set<ValueId>& in_memory) {
  std::set<ValueId> wanted = in_memory;
  wanted.insert(stage.made_partly.begin(), stage.made_partly.end());
  std::set<ValueId> read;
  for (const Rematerialized& value : stage.read_partly) read.insert(value.recomputed);
  const std::vector<RowStep>& steps = stage.pass.steps;
  std::vector<bool> skipped(steps.size());
  for (std::size_t i = steps.size(); i-- > 0;) {
    const std::vector<ValueId>& made = steps[i].outputs;
    skipped[i] = std::none_of(made.begin(), made.end(), [&](ValueId id) {
      const bool sum = program.values[static_cast<std::size_t>(id)].kind == ValueKind::kReduction;
      return sum || (wanted.contains(id) && !read.contains(id));
    });
    if (!skipped[i]) wanted.insert(steps[i].inputs.begin(), steps[i].inputs.end());
  }
  return skipped;
}

bool writes(const StageShape& stage, ValueId id) {
  const std::vector<RowStep>& steps = stage.pass.steps;
  return std::any_of(steps.begin(), steps.end(),
                     [&](const RowStep& step) { return contains(step.outputs, id); });
}

}  // namespace

// What the program repeats, where the graph's blocks are whole I/O chunks of it.
void PassBuilder::keep_partly(int section, const std::set<ValueId>& in_memory) {
  const Program& program = this->program(section);
  std::vector<Rematerialized> rematerialized;
  std::int64_t stretch = 1;
  OOC_CHECK(options_.kept_quarters < 4);
  for (const Rematerialized& value : program.rematerialized) {
    OOC_CHECK(!in_memory.contains(value.made) && !in_memory.contains(value.recomputed));
    const PlannedTensor tensor = describe_tensor(section, value.made);
    const std::int64_t io_chunk_rows = tensor.io_chunk_blocks * tensor.layout.block_rows;
    if (graph_.edges.block_rows % io_chunk_rows != 0) continue;
    stretch = std::max(stretch, io_chunk_rows);
    rematerialized.push_back(value);
  }
  StoredRows& kept = kept_[static_cast<std::size_t>(section)];
  kept = {options_.kept_quarters, stretch};
  const double rows = static_cast<double>(kept.index(graph_.edges.vertices));
  for (StageShape& stage : stages_) {
    if (stage.section != section) continue;
    for (const Rematerialized& value : rematerialized) {
      if (writes(stage, value.made)) add_once(stage.made_partly, value.made);
      if (writes(stage, value.recomputed)) stage.read_partly.push_back(value);
    }
    if (stage.read_partly.empty()) continue;
    stage.pass.skipped = find_skipped(program, stage, in_memory);
    for (std::size_t i = 0; i < stage.pass.steps.size(); ++i) {
      if (stage.pass.skipped[i]) stage.skipped_steps.push_back(stage.pass.steps[i]);
    }
    stage.skipped_rows = rows;
    stage.elementwise_bytes -= rows * row_elementwise_bytes(program, stage.skipped_steps);
    stage.row_multiply_adds -= rows * row_multiply_adds(program, stage.skipped_steps);
  }
}

Draft PassBuilder::draft(const std::vector<PassSplit>& splits) const {
  Draft draft;
  for (const Program* program : programs_) {
    draft.value_tensors.emplace_back(program->values.size(), -1);
  }
  for (int stage = 0; stage < static_cast<int>(stages_.size()); ++stage) {
    const auto at = static_cast<std::size_t>(stage);
    while (static_cast<int>(draft.section_first.size()) <= stages_[at].section) {
      draft.section_first.push_back(draft.pass_count());
    }
    split_stage(draft, stage, splits[at]);
  }
  draft.section_first.resize(programs_.size() + 1, draft.pass_count());
  return draft;
}

void PassBuilder::split_stage(Draft& draft, int index, PassSplit split) const {
  const StageShape& stage = stages_[static_cast<std::size_t>(index)];
  const std::int64_t blocks = own_.count();
  PassDraft rows;
  rows.stage = index;
  rows.rows = true;
  rows.dst_range_blocks = blocks;
  if (stage.pass.kind == PassKind::kRow) {
    add_row_uses(draft, stage, rows);
    draft.passes.push_back(std::move(rows));
    return;
  }
  PassDraft edges = rows;
  edges.edges = true;
  edges.slices_at_once =
      split.slices_at_once > 0 ? std::min(split.slices_at_once, stage.slices) : stage.slices;
  edges.groups = ceil_div(stage.slices, edges.slices_at_once);
  edges.slot_spans = split.slot_spans;
  edges.rows = edges.groups == 1 && !stage.pass.steps.empty();
  const bool row_pass = !edges.rows && !stage.pass.steps.empty();
  if (split.dst_range_blocks > 0) edges.dst_ranges = ceil_div(blocks, split.dst_range_blocks);
  add_edge_uses(draft, stage, edges);
  if (edges.rows) add_row_uses(draft, stage, edges);
  std::int64_t io_chunk = 1;
  for (const UseDraft& use : edges.uses) {
    if (use.tensor < 0 || use.role != UseRole::kAccumulator) continue;
    const PlannedTensor& tensor = draft.tensors[static_cast<std::size_t>(use.tensor)];
    io_chunk = std::max(io_chunk, tensor.io_chunk_blocks / blocks_in(graph_.edges, tensor));
  }
  if (split.dst_range_blocks > 0)
    edges.dst_range_blocks = std::min(round_up(split.dst_range_blocks, io_chunk), blocks);
  edges.dst_ranges = ceil_div(blocks, edges.dst_range_blocks);
  // Sums over edges have memory for the blocks of one destination range.
  if (edges.dst_range_count() > 1 && stage.edge_reductions.empty()) {
    const std::int64_t forced = options_.dst_ranges_at_once;
    edges.dst_ranges_at_once = forced > 0 ? forced : split.dst_ranges_at_once;
  }
  draft.passes.push_back(std::move(edges));
  if (!row_pass) return;
  add_row_uses(draft, stage, rows);
  draft.passes.push_back(std::move(rows));
}

void PassBuilder::add_edge_uses(Draft& draft, const StageShape& stage, PassDraft& pass) const {
  const auto sliced = [&](ValueId id) {
    return pass.groups > 1 && value(stage, id).cols == stage.pass.slice_local_cols;
  };
  for (const ValueId id : stage.streamed) {
    pass.uses.push_back({UseRole::kStreamed, id, tensor_of(draft, stage.section, id), sliced(id)});
  }
  for (const ValueId id : stage.resident) {
    pass.uses.push_back({UseRole::kResident, id, tensor_of(draft, stage.section, id), sliced(id)});
  }
  for (const ValueId id : stage.accumulators) {
    // In memory as a whole it is a tensor too, so that it may lie in several places.
    const bool kept = stage.kept.contains(id) || (pass.groups > 1 && contains(stage.reads, id)) ||
                      (pass.groups == 1 && pass.dst_ranges == 1);
    pass.uses.push_back(
        {UseRole::kAccumulator, id, kept ? tensor_of(draft, stage.section, id) : -1, sliced(id)});
  }
}

void PassBuilder::add_row_uses(Draft& draft, const StageShape& stage, PassDraft& pass) const {
  for (const ValueId id : stage.reads) {
    if (pass.edges && (contains(stage.resident, id) || contains(stage.accumulators, id))) continue;
    pass.uses.push_back({UseRole::kRows, id, tensor_of(draft, stage.section, id), false});
  }
  for (const ValueId id : stage.writes) {
    pass.uses.push_back({UseRole::kOutput, id, tensor_of(draft, stage.section, id), false});
  }
  for (const auto& [made, recomputed] : stage.read_partly) {
    pass.uses.push_back(
        {UseRole::kRows, recomputed, kept_tensor_of(draft, stage.section, made), false});
  }
  for (const ValueId id : stage.made_partly) {
    pass.uses.push_back({UseRole::kOutput, id, kept_tensor_of(draft, stage.section, id), false});
  }
}

std::vector<Section> PassBuilder::sections(const Draft& draft) const {
  std::vector<Section> sections(programs_.size());
  for (std::size_t i = 0; i < sections.size(); ++i) {
    sections[i].tensors = draft.value_tensors[i];
    sections[i].first_pass = draft.section_first[i];
  }
  for (const PassDraft& from : draft.passes) {
    const StageShape& stage = stages_[static_cast<std::size_t>(from.stage)];
    Pass pass = stage.pass;
    if (!from.rows) {
      pass.steps.clear();
      pass.skipped.clear();
      pass.scratch.clear();
      pass.reductions.clear();
      pass.scratch_bytes = 0;
    } else if (!from.edges && pass.kind == PassKind::kPropagate) {
      pass.kind = PassKind::kRow;
      pass.name += " rows";
      pass.propagation = {};
      pass.batch_edges = pass.slice_local_cols = pass.edge_scratch_bytes = 0;
    }
    pass.step_rows = step_rows(draft, from);
    pass.dst_range_blocks = from.dst_range_blocks;
    pass.dst_ranges = from.dst_ranges;
    pass.dst_ranges_at_once = from.dst_ranges_at_once;
    pass.slices_at_once = from.edges ? from.slices_at_once : 0;
    pass.lanes = lanes(from);
    if (from.rows) pass.row_partials = row_partials(draft, from);
    if (from.edges) pass.edge_partials = edge_partials(from);
    for (const UseDraft& use : from.uses) {
      pass.uses.push_back({use.role, use.value, use.tensor});
    }
    sections[static_cast<std::size_t>(stage.section)].passes.push_back(std::move(pass));
  }
  return sections;
}

std::int64_t PassBuilder::step_rows(const Draft& draft, const PassDraft& pass) const {
  std::int64_t rows = graph_.edges.block_rows;
  for (const UseDraft& use : pass.uses) {
    if (use.role != UseRole::kRows && use.role != UseRole::kOutput) continue;
    rows = std::min(rows, draft.tensors[static_cast<std::size_t>(use.tensor)].layout.block_rows);
  }
  return rows;
}

std::int64_t PassBuilder::scratch_bytes(const PassDraft& pass) const {
  const Pass& work = stages_[static_cast<std::size_t>(pass.stage)].pass;
  Pass dst_range;
  if (pass.rows) dst_range.scratch_bytes = work.scratch_bytes;
  if (pass.edges) dst_range.edge_scratch_bytes = work.edge_scratch_bytes;
  dst_range.lanes = lanes(pass);
  return ooc::scratch_bytes(dst_range, options_.workers);
}

// As many as a small part of the memory takes.
std::int64_t PassBuilder::lanes(const PassDraft& pass) const {
  constexpr std::int64_t kShare = 16;
  if (options_.compute.lanes == 0) return 0;
  if (!pass.rows) return 1;
  const StageShape& stage = stages_[static_cast<std::size_t>(pass.stage)];
  // Of slices that are converted a call has so many.
  constexpr std::int64_t kMostConverted = 16384;
  std::int64_t converted = 1;
  for (const Scratch& scratch : stage.pass.scratch) {
    if (scratch.converted) converted += ceil_div(value(stage, scratch.value).cols, kSliceWidth);
  }
  const std::int64_t most = std::min({options_.compute.lanes, group_count(stage),
                                      std::max<std::int64_t>(1, kMostConverted / converted)});
  std::int64_t bytes = stage.pass.scratch_bytes;
  for (const ValueId id : stage.pass.reductions) bytes += partial_bytes(value(stage, id));
  if (options_.memory_bytes == 0 || bytes == 0) return most;
  return std::clamp<std::int64_t>(options_.memory_bytes / kShare / bytes, 1, most);
}

// Of the row-wise work.
std::int64_t PassBuilder::group_count(const StageShape& stage) const {
  return graph_.edges.block_count() * ceil_div(graph_.edges.block_rows, stage.pass.group_rows);
}

// Where a device's leaves begin or end anywhere in the tree, sums wait for those of others on both
// of their sides; one of these comes in at a time.
std::int64_t PassBuilder::partials_of_others(std::int64_t leaves) const {
  return options_.devices > 1 ? 2 * partials_in_order(leaves) + 1 : 0;
}

std::int64_t PassBuilder::row_partials(const Draft& draft, const PassDraft& pass) const {
  const StageShape& stage = stages_[static_cast<std::size_t>(pass.stage)];
  const std::int64_t leaves = group_count(stage), others = partials_of_others(leaves);
  if (options_.compute.lanes > 0) return lanes(pass) + partials_in_order(leaves) + others;
  const std::int64_t at_once = ceil_div(step_rows(draft, pass), stage.pass.group_rows);
  const std::int64_t window = (steps_ahead(options_.workers, at_once) + 1) * at_once;
  return most_partials(leaves, options_.workers, window) + others;
}

// Of a block each, from its first tile on: all blocks of a destination range at once, and those of
// destination ranges before it, one a level.
std::int64_t PassBuilder::edge_partials(const PassDraft& pass) const {
  const std::int64_t blocks = graph_.edges.block_count();
  return most_partials(blocks, pass.dst_range_blocks, 0) + partials_of_others(blocks);
}

std::int64_t PassBuilder::reduction_bytes(const Draft& draft) const {
  std::int64_t bytes = 0;
  for (const PassDraft& pass : draft.passes) {
    const StageShape& stage = stages_[static_cast<std::size_t>(pass.stage)];
    for (const ValueId id : stage.pass.reductions) {
      if (pass.rows) bytes += row_partials(draft, pass) * partial_bytes(value(stage, id));
    }
    for (const ValueId id : stage.edge_reductions) {
      if (pass.edges) bytes += edge_partials(pass) * partial_bytes(value(stage, id));
    }
  }
  return bytes;
}

}  // namespace ooc
