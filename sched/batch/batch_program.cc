#include "sched/batch/batch_program.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "sched/plan/passes/stages.h"
#include "storage/base/errors.h"

namespace ooc {
namespace {

class Lowering {
 public:
  explicit Lowering(const Program& program)
      : program_(program), in_memory_(lifetimes_of(program, {}).in_memory) {
    out_.program = program;
    out_.rows_of.resize(program.values.size());
    std::iota(out_.rows_of.begin(), out_.rows_of.end(), 0);
    for (const Value& value : program.values) out_.memory_level.push_back(value.level);
    for (const Stage& stage : program.stages) {
      for (const RowStep& step : stage.steps) {
        if (step.op == "extend_rows") extended_.insert(step.inputs[0]);
      }
    }
  }

  BatchProgram lower() {
    for (Stage& stage : out_.program.stages) lower(stage);
    for (ValueId& id : out_.program.outputs) id = rows_of(id);
    out_.program.rematerialized.clear();
    return std::move(out_);
  }

 private:
  const Value& value(ValueId id) const { return program_.values[static_cast<std::size_t>(id)]; }
  ValueId& rows_of(ValueId id) { return out_.rows_of[static_cast<std::size_t>(id)]; }
  int& memory_level(ValueId id) { return out_.memory_level[static_cast<std::size_t>(id)]; }
  bool is_row(ValueId id) const {
    return value(id).kind == ValueKind::kInput || value(id).kind == ValueKind::kVertex;
  }

  // That of what the steps make, or, of steps that only sum, of what they read.
  int level_of(const Stage& stage) const {
    int level = -1;
    for (const RowStep& step : stage.steps) {
      const bool sums = !is_row(step.outputs[0]);
      const std::vector<ValueId>& rows = sums ? step.inputs : step.outputs;
      for (const ValueId id : rows) {
        if (!is_row(id)) continue;
        OOC_CHECK(value(id).level >= 0 && (level < 0 || value(id).level == level));
        level = value(id).level;
      }
    }
    OOC_CHECK(level >= 0 || stage.steps.empty());
    return level;
  }

  void lower(Stage& stage) {
    if (stage.propagation) {
      Propagation& edges = *stage.propagation;
      for (EdgeInput& input : edges.inputs) {
        if (input.vertex >= 0) input.vertex = rows_of(input.vertex);
      }
      if (edges.splits >= 0) edges.splits = rows_of(edges.splits);
    }
    std::erase_if(stage.steps, [&](const RowStep& step) { return copies(step); });
    const int level = level_of(stage);
    out_.step_level.push_back(level);
    for (RowStep& step : stage.steps) {
      OOC_CHECK(step.op != "extend_rows");
      for (ValueId& id : step.inputs) {
        id = rows_of(id);
        OOC_CHECK(!is_row(id) || memory_level(id) >= level);
      }
    }
  }

  // Whether the step only gives rows that are in memory already; then its output is replaced.
  bool copies(const RowStep& step) {
    const bool extends = step.op == "extend_rows";
    if (!extends && step.op != "copy" && step.op != "copy_ids" && step.op != "first_rows") {
      return false;
    }
    const ValueId from = rows_of(step.inputs[0]), to = step.outputs[0];
    const bool input = value(from).kind == ValueKind::kInput;
    if (!input && !in_memory_.contains(from)) return false;
    OOC_CHECK(value(from).dtype == value(to).dtype && value(from).cols == value(to).cols);
    if (extends) {
      OOC_CHECK(!input);  // whose memory isn't ours
      memory_level(from) = std::max(memory_level(from), value(to).level);
    } else {
      OOC_CHECK(value(to).level <= memory_level(from));
      if (extended_.contains(to)) return false;
    }
    rows_of(to) = from;
    return true;
  }

  const Program& program_;
  std::set<ValueId> in_memory_;
  std::set<ValueId> extended_;  // read by extend_rows
  BatchProgram out_;
};

}  // namespace

BatchProgram lower_to_batches(const Program& program) { return Lowering(program).lower(); }

}  // namespace ooc
