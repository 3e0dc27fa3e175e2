#include "kernels/rows/row_work_cpu.h"

#include <utility>

#include "kernels/rows/row_groups.h"
#include "kernels/spec/row_kernels.h"
#include "storage/base/errors.h"
#include "storage/base/half.h"

namespace ooc::cpu {
namespace {

class CpuRowWork final : public RowWork {
 public:
  CpuRowWork(RowProgram program, std::vector<RowKernel> kernels)
      : groups_(std::move(program)), kernels_(std::move(kernels)) {
    OOC_CHECK(kernels_.size() == groups_.program().steps.size());
  }

  void run(const RowCall& call) const override {
    for (const RowGroup& group : call.groups) {
      const std::vector<MatrixView> views = groups_.views_of(call, group);
      groups_.for_each_conversion(
          group, views,
          [](const RowProgram::Operand& operand, const void* rows, void* to, std::int64_t count) {
            widen(operand.stored, rows, operand.dtype, to, static_cast<std::size_t>(count));
          });
      for (std::size_t i = 0; i < kernels_.size(); ++i) compute(call, i, views);
    }
  }

 private:
  void compute(const RowCall& call, std::size_t at, std::span<const MatrixView> views) const {
    const RowProgram::Step& step = groups_.program().steps[at];
    if (!RowGroups::does(call, step)) return;
    std::vector<MatrixView> inputs, outputs;
    for (const int i : step.inputs) inputs.push_back(views[static_cast<std::size_t>(i)]);
    for (const int i : step.outputs) outputs.push_back(views[static_cast<std::size_t>(i)]);
    const CountOf counted = call.counts == nullptr ? CountOf::kNone : count_of(step.op);
    if (counted == CountOf::kNone) {
      return kernels_[at]({inputs, outputs, step.attributes, call.state});
    }
    Attributes attributes = step.attributes;
    const StepCounts& counts = *call.counts;
    attributes.count = counted == CountOf::kRows     ? counts.rows
                       : counted == CountOf::kLabels ? counts.labels
                                                     : counts.label_weights;
    kernels_[at]({inputs, outputs, attributes, call.state});
  }

  RowGroups groups_;
  std::vector<RowKernel> kernels_;  // by step
};

}  // namespace

std::unique_ptr<RowWork> make_row_work(RowProgram program, std::vector<RowKernel> kernels) {
  return std::make_unique<CpuRowWork>(std::move(program), std::move(kernels));
}

}  // namespace ooc::cpu
