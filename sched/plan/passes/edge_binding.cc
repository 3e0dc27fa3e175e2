#include "sched/plan/passes/edge_binding.h"

#include <algorithm>

#include "storage/base/errors.h"

namespace ooc {
namespace {

const Value& value_of(const Program& program, ValueId id) {
  return program.values[static_cast<std::size_t>(id)];
}

// Its number in the list; appended where it isn't there.
int number_of(std::vector<ValueId>& list, ValueId id) {
  const auto found = std::find(list.begin(), list.end(), id);
  if (found != list.end()) return static_cast<int>(found - list.begin());
  list.push_back(id);
  return static_cast<int>(list.size()) - 1;
}

std::vector<EdgeProgram::Shape> shapes_of(const Program& program,
                                          const std::vector<ValueId>& values) {
  std::vector<EdgeProgram::Shape> shapes;
  for (const ValueId id : values) {
    shapes.push_back({value_of(program, id).cols, value_of(program, id).dtype});
  }
  return shapes;
}

class Binder {
 public:
  Binder(const Program& program, const Propagation& work) : program_(program), work_(work) {}

  EdgeBinding bind() {
    for (const EdgeInput& input : work_.inputs) {
      EdgeProgram::Load load{input.load, -1, number_of(values_, input.edge)};
      if (input.load == EdgeLoad::kStreamed) load.operand = number_of(out_.streamed, input.vertex);
      if (input.load == EdgeLoad::kResident) load.operand = number_of(out_.resident, input.vertex);
      out_.program.loads.push_back(load);
    }
    if (work_.splits >= 0) out_.program.splits = number_of(out_.streamed, work_.splits);
    for (const RowStep& step : work_.steps) add(step);
    for (const EdgeFold& fold : work_.folds) {
      EdgeProgram::FoldStep lowered{fold.fold, {}, {}};
      for (const ValueId id : fold.inputs) lowered.inputs.push_back(number_of(values_, id));
      for (const ValueId id : fold.accumulators) {
        lowered.accumulators.push_back(number_of(out_.accumulators, id));
      }
      out_.program.folds.push_back(std::move(lowered));
    }
    out_.program.real = program_.real;
    out_.program.values = shapes_of(program_, values_);
    out_.program.streamed = shapes_of(program_, out_.streamed);
    out_.program.resident = shapes_of(program_, out_.resident);
    out_.program.accumulators = shapes_of(program_, out_.accumulators);
    for (const ValueId id : out_.matrices) {
      const Value& matrix = value_of(program_, id);
      out_.program.matrices.push_back({matrix.rows, matrix.cols, matrix.dtype});
    }
    return std::move(out_);
  }

 private:
  EdgeProgram::Operand operand(ValueId id) {
    const bool is_matrix = value_of(program_, id).kind != ValueKind::kEdge;
    return {is_matrix, number_of(is_matrix ? out_.matrices : values_, id)};
  }

  void add(const RowStep& step) {
    EdgeProgram::Step lowered{step.op, {}, {}, step.attributes};
    for (const ValueId id : step.inputs) lowered.inputs.push_back(operand(id));
    lowered.output = operand(step.outputs[0]);
    if (lowered.output.is_matrix) out_.reductions.push_back(step.outputs[0]);
    out_.program.steps.push_back(std::move(lowered));
  }

  const Program& program_;
  const Propagation& work_;
  EdgeBinding out_;
  std::vector<ValueId> values_;
};

}  // namespace

EdgeBinding bind_edges(const Program& program, const Propagation& propagation,
                       std::int64_t batch_edges, std::int64_t slice_local_cols) {
  EdgeBinding binding = Binder(program, propagation).bind();
  binding.program.batch_edges = batch_edges;
  binding.program.slice_local_cols = slice_local_cols;
  return binding;
}

}  // namespace ooc
