#include "sched/batch/batch_stage.h"

#include <algorithm>
#include <utility>

#include "sched/plan/passes/stages.h"
#include "storage/base/errors.h"

namespace ooc {
namespace {

using Place = RowProgram::Place;

const Value& value_of(const Program& program, ValueId id) {
  return program.values[static_cast<std::size_t>(id)];
}

bool is_row(const Value& value) {
  return value.kind == ValueKind::kInput || value.kind == ValueKind::kVertex;
}

// Numbers the operands of a stage's steps as its row program does.
class RowBinder {
 public:
  RowBinder(const Program& program, const Pass& pass, BatchStage& stage)
      : program_(program), pass_(pass), stage_(stage) {}

  RowProgram bind() {
    out_.real = program_.real;
    out_.group_rows = pass_.group_rows;
    for (const ValueId id : pass_.reductions) number_of(id, true);
    for (const RowStep& step : pass_.steps) {
      RowProgram::Step lowered{step.op, {}, {}, step.attributes};
      for (const ValueId id : step.inputs) lowered.inputs.push_back(number_of(id, false));
      for (const ValueId id : step.outputs) lowered.outputs.push_back(number_of(id, true));
      out_.steps.push_back(std::move(lowered));
    }
    return std::move(out_);
  }

 private:
  int number_of(ValueId id, bool output) {
    const Value& value = value_of(program_, id);
    BatchStage::Operand bound{Place::kTensor, id};
    const auto scratch = std::find_if(pass_.scratch.begin(), pass_.scratch.end(),
                                      [&](const Scratch& at) { return at.value == id; });
    if (!is_row(value)) {
      bound.place = output ? Place::kReduction : Place::kMatrix;
    } else if (scratch != pass_.scratch.end()) {
      bound.place = Place::kScratch;
    }
    std::vector<BatchStage::Operand>& operands = stage_.operands;
    const auto found = std::find_if(operands.begin(), operands.end(), [&](const auto& operand) {
      return operand.value == id && operand.place == bound.place;
    });
    if (found != operands.end()) return static_cast<int>(found - operands.begin());
    RowProgram::Operand operand;
    operand.place = bound.place;
    operand.rows = value.rows;
    operand.cols = value.cols;
    operand.dtype = operand.stored = value.dtype;
    if (bound.place == Place::kScratch) operand.scratch = scratch->offset;
    out_.operands.push_back(operand);
    operands.push_back(bound);
    return static_cast<int>(operands.size()) - 1;
  }

  const Program& program_;
  const Pass& pass_;
  BatchStage& stage_;
  RowProgram out_;
};

// The level of the destinations, as the vertices that fold tell it, or else the edges' values.
int level_of_edges(const Program& program, const Propagation& edges) {
  int level = -1;
  for (const EdgeFold& fold : edges.folds) {
    for (const ValueId id : fold.accumulators) {
      OOC_CHECK(level < 0 || value_of(program, id).level == level);
      level = value_of(program, id).level;
    }
  }
  if (level >= 0) return edges.direction == Direction::kIn ? level : level - 1;
  return value_of(program, edges.inputs[0].edge).level;
}

void bind_edges(Backend& backend, const BatchProgram& from, const Propagation& edges,
                BatchStage& stage) {
  Pass pass;
  add_edge_work(from.program, edges, {}, {}, pass);  // takes every edge
  stage.edges = bind_edges(from.program, pass.propagation, pass.batch_edges, pass.slice_local_cols);
  stage.edge_work = backend.edge_work(stage.edges.program);
  stage.direction = edges.direction;
  stage.loops = edges.loops;
  stage.slices = std::max<std::int64_t>(1, ceil_div(pass.slice_local_cols, kSliceWidth));
  stage.edge_scratch_bytes = pass.edge_scratch_bytes;
  stage.edge_level = level_of_edges(from.program, edges);
  OOC_CHECK(stage.edge_level >= 0);
  const int sources = stage.edge_level + 1;
  const bool in = edges.direction == Direction::kIn;
  const auto has_rows = [&](int level) {
    return [&from, level](ValueId id) {
      return from.memory_level[static_cast<std::size_t>(id)] >= level;
    };
  };
  const EdgeBinding& bound = stage.edges;
  OOC_CHECK(std::all_of(bound.streamed.begin(), bound.streamed.end(),
                        has_rows(in ? sources : stage.edge_level)));
  OOC_CHECK(std::all_of(bound.resident.begin(), bound.resident.end(),
                        has_rows(in ? stage.edge_level : sources)));
}

}  // namespace

BatchStage bind_batch_stage(Backend& backend, const BatchProgram& program, std::size_t at,
                            const std::set<ValueId>& in_memory, std::int64_t group_rows) {
  const Stage& from = program.program.stages[at];
  BatchStage stage;
  if (from.propagation) bind_edges(backend, program, *from.propagation, stage);
  if (!from.steps.empty()) {
    const Pass pass = make_row_work(program.program, from, in_memory, {}, group_rows);
    stage.rows = backend.row_work(RowBinder(program.program, pass, stage).bind());
    stage.reductions = pass.reductions;
    stage.level = program.step_level[at];
    stage.group_rows = group_rows;
    stage.row_scratch_bytes = pass.scratch_bytes;
  }
  const auto add_extended = [&](ValueId id) {
    const Value& value = value_of(program.program, id);
    const bool longer = program.memory_level[static_cast<std::size_t>(id)] > value.level;
    if (value.kind == ValueKind::kVertex && longer) stage.extended.push_back(id);
  };
  for (const EdgeFold& fold :
       from.propagation ? from.propagation->folds : std::vector<EdgeFold>{}) {
    for (const ValueId id : fold.accumulators) add_extended(id);
  }
  for (const RowStep& step : from.steps) {
    for (const ValueId id : step.outputs) add_extended(id);
  }
  return stage;
}

}  // namespace ooc
