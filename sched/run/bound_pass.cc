#include "sched/run/bound_pass.h"

#include <algorithm>
#include <utility>

#include "storage/base/errors.h"

namespace ooc {
namespace {

using Place = RowProgram::Place;

// The use through which steps find a value; a destination range's own memory before anything that
// streams by.
std::size_t find_use(const Pass& pass, ValueId value) {
  const auto rank = [](UseRole role) {
    switch (role) {
      case UseRole::kAccumulator:
      case UseRole::kResident:
        return 0;
      case UseRole::kRows:
      case UseRole::kOutput:
        return 1;
      case UseRole::kStreamed:
        return 2;
    }
    return 2;
  };
  std::size_t found = pass.uses.size();
  for (std::size_t i = 0; i < pass.uses.size(); ++i) {
    if (pass.uses[i].value != value || rank(pass.uses[i].role) == 2) continue;
    if (found == pass.uses.size() || rank(pass.uses[i].role) < rank(pass.uses[found].role)) {
      found = i;
    }
  }
  OOC_CHECK(found < pass.uses.size());
  return found;
}

// Numbers the operands of a pass's steps as its row program does.
class RowBinder {
 public:
  RowBinder(const Program& program, const Plan& plan, const Pass& pass)
      : program_(program), plan_(plan), pass_(pass) {}

  RowProgram bind(std::vector<BoundOperand>& operands) {
    out_.real = program_.real;
    out_.group_rows = pass_.group_rows;
    for (const ValueId id : pass_.reductions) number_of(id, true);
    for (std::size_t i = 0; i < pass_.steps.size(); ++i) {
      const RowStep& step = pass_.steps[i];
      RowProgram::Step lowered{
          step.op, {}, {}, step.attributes, !pass_.skipped.empty() && pass_.skipped[i]};
      for (const ValueId id : step.inputs) lowered.inputs.push_back(number_of(id, false));
      for (const ValueId id : step.outputs) lowered.outputs.push_back(number_of(id, true));
      out_.steps.push_back(std::move(lowered));
    }
    operands = std::move(bound_);
    return std::move(out_);
  }

 private:
  int number_of(ValueId id, bool output) {
    const auto found = std::find_if(bound_.begin(), bound_.end(), [&](const BoundOperand& bound) {
      return bound.value == id && (bound.place == Place::kReduction) == is_reduced(id, output);
    });
    if (found != bound_.end()) return static_cast<int>(found - bound_.begin());
    add(id, output);
    return static_cast<int>(bound_.size()) - 1;
  }

  bool is_row(ValueId id) const {
    const ValueKind kind = value(id).kind;
    return kind == ValueKind::kInput || kind == ValueKind::kVertex;
  }
  bool is_reduced(ValueId id, bool output) const { return output && !is_row(id); }
  const Value& value(ValueId id) const { return program_.values[static_cast<std::size_t>(id)]; }

  void add(ValueId id, bool output) {
    BoundOperand bound{.value = id};
    RowProgram::Operand operand;
    operand.rows = value(id).rows;
    operand.cols = value(id).cols;
    operand.dtype = value(id).dtype;
    const auto scratch = std::find_if(pass_.scratch.begin(), pass_.scratch.end(),
                                      [&](const Scratch& at) { return at.value == id; });
    if (!is_row(id)) {
      bound.place = output ? Place::kReduction : Place::kMatrix;
    } else if (scratch == pass_.scratch.end()) {
      bound.use = find_use(pass_, id);
    } else {
      bound.place = scratch->converted ? Place::kConverted : Place::kScratch;
      operand.scratch = scratch->offset;
      const bool stored = std::any_of(pass_.uses.begin(), pass_.uses.end(),
                                      [&](const TensorUse& use) { return use.value == id; });
      if (stored) bound.use = find_use(pass_, id);
      operand.otherwise_stored = stored && !scratch->converted;
    }
    if (bound.place == Place::kConverted) {
      const int tensor = pass_.uses[bound.use].tensor;
      operand.stored = plan_.tensors[static_cast<std::size_t>(tensor)].dtype;
    }
    operand.place = bound.place;
    out_.operands.push_back(operand);
    bound_.push_back(bound);
  }

  const Program& program_;
  const Plan& plan_;
  const Pass& pass_;
  RowProgram out_;
  std::vector<BoundOperand> bound_;
};

}  // namespace

BoundPass bind_pass(Backend& backend, const Program& program, const Plan& plan, const Pass& pass,
                    const EdgeLayout& edges) {
  BoundPass bound;
  bound.pass = &pass;
  if (pass.kind == PassKind::kPropagate) {
    bound.edges = bind_edges(program, pass.propagation, pass.batch_edges, pass.slice_local_cols);
    bound.edge_work = backend.edge_work(bound.edges.program);
  }
  if (pass.steps.empty()) return bound;
  bound.rows = backend.row_work(RowBinder(program, plan, pass).bind(bound.operands));
  const std::int64_t blocks = edges.block_count();
  const std::int64_t last_rows = edges.vertices - (blocks - 1) * edges.block_rows;
  bound.groups_per_block = ceil_div(edges.block_rows, pass.group_rows);
  bound.groups_per_step = ceil_div(pass.step_rows, pass.group_rows);
  OOC_CHECK(pass.step_rows == edges.block_rows || pass.step_rows % pass.group_rows == 0);
  bound.group_count = (blocks - 1) * bound.groups_per_block + ceil_div(last_rows, pass.group_rows);
  return bound;
}

}  // namespace ooc
