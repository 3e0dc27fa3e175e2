#include "kernels/rows/row_work_cuda.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/launch_cuda.h"
#include "kernels/rows/cuda_row_kernels.h"
#include "kernels/rows/row_groups.h"
#include "storage/base/errors.h"
#include "storage/base/half.h"

namespace ooc::cuda {
namespace {

__device__ inline float wide(float value) { return value; }
__device__ inline float wide(Half value) { return to_float(value); }
__device__ inline float wide(BFloat16 value) { return to_float(value); }

// Elements beside each other, padding too.
struct Converted {
  const void* from = nullptr;
  void* to = nullptr;
  std::int64_t count = 0;
};

// blockIdx.y: the slice.
template <class From, class To>
__global__ void __launch_bounds__(kThreads, 4) widen_elements(const Converted* slices) {
  const Converted slice = slices[blockIdx.y];
  const From* __restrict__ const from = static_cast<const From*>(slice.from);
  To* __restrict__ const to = static_cast<To*>(slice.to);
  const std::int64_t stride = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < slice.count;
       i += stride) {
    to[i] = wide(from[i]);
  }
}

// Slices of one type into another.
struct Conversion {
  DType from, to;
  std::vector<Converted> slices;
  std::size_t argument = 0;  // the slices

  template <class From, class To>
  void launch_on(const Converted* there, cudaStream_t stream) const {
    std::int64_t most = 0;
    for (const Converted& slice : slices) most = std::max(most, slice.count);
    LaunchShape shape = shape_for(most);
    shape.blocks.y = static_cast<unsigned>(slices.size());
    launch(widen_elements<From, To>, shape, stream, there);
  }
  template <class From>
  void launch_from(const Converted* there, cudaStream_t stream) const {
    to == DType::kF32 ? launch_on<From, float>(there, stream)
                      : launch_on<From, double>(there, stream);
  }
  void launch_all(const Converted* there, cudaStream_t stream) const {
    OOC_CHECK(is_feature_dtype(from) && (to == DType::kF32 || to == DType::kF64));
    if (from == DType::kF32) return launch_from<float>(there, stream);
    if (from == DType::kF16) return launch_from<Half>(there, stream);
    launch_from<BFloat16>(there, stream);
  }
};

class CudaRowWork final : public RowWork {
 public:
  CudaRowWork(RowProgram program, ArgumentRing& ring) : groups_(std::move(program)), ring_(ring) {
    for (const RowProgram::Step& step : groups_.program().steps) {
      kernels_.push_back(row_kernel(step.op, groups_.program().real));
      if (kernels_.back() != nullptr) continue;
      throw DeviceError("the operator " + step.op + " has no CUDA kernel yet", "--devices cuda",
                        "give --devices cpu");
    }
  }

  void run(const RowCall& call) const override {
    std::vector<std::vector<MatrixView>> views;  // by group
    std::vector<Conversion> conversions;
    for (const RowGroup& group : call.groups) {
      views.push_back(groups_.views_of(call, group));
      add_conversions(group, views.back(), conversions);
    }
    Arguments arguments;
    for (Conversion& conversion : conversions) {
      conversion.argument = arguments.add(conversion.slices);
    }
    const std::vector<std::size_t> placed = add_views(views, arguments);
    const ArgumentRing::Sent sent = ring_.send(arguments);
    for (const Conversion& conversion : conversions) {
      conversion.launch_all(sent.at<Converted>(conversion.argument), ring_.stream());
    }
    std::vector<GroupOperand> operands;
    const std::vector<MatrixView>& largest = largest_of(call, views);
    for (std::size_t i = 0; i < placed.size(); ++i) {
      operands.emplace_back(sent.at<GroupView>(placed[i]), largest[i]);
    }
    for (std::size_t i = 0; i < kernels_.size(); ++i) compute(call, i, operands);
  }

 private:
  void add_conversions(const RowGroup& group, std::span<const MatrixView> views,
                       std::vector<Conversion>& conversions) const {
    groups_.for_each_conversion(
        group, views,
        [&](const RowProgram::Operand& operand, const void* rows, void* to, std::int64_t count) {
          auto found = std::find_if(conversions.begin(), conversions.end(), [&](const auto& at) {
            return at.from == operand.stored && at.to == operand.dtype;
          });
          if (found == conversions.end()) {
            found = conversions.insert(found, {operand.stored, operand.dtype, {}});
          }
          found->slices.push_back({rows, to, count});
        });
  }

  // By operand.
  static std::vector<std::size_t> add_views(const std::vector<std::vector<MatrixView>>& views,
                                            Arguments& arguments) {
    std::vector<std::size_t> placed;
    for (std::size_t i = 0; i < views.front().size(); ++i) {
      std::vector<GroupView> of_operand;
      for (const std::vector<MatrixView>& group : views) of_operand.emplace_back(group[i]);
      placed.push_back(arguments.add(of_operand));
    }
    return placed;
  }

  // Of the group with the most rows.
  static const std::vector<MatrixView>& largest_of(
      const RowCall& call, const std::vector<std::vector<MatrixView>>& views) {
    const auto largest =
        std::max_element(call.groups.begin(), call.groups.end(),
                         [](const RowGroup& a, const RowGroup& b) { return a.rows < b.rows; });
    return views[static_cast<std::size_t>(largest - call.groups.begin())];
  }

  void compute(const RowCall& call, std::size_t at, std::span<const GroupOperand> operands) const {
    const RowProgram::Step& step = groups_.program().steps[at];
    if (!RowGroups::does(call, step)) return;
    std::vector<GroupOperand> inputs, outputs;
    for (const int i : step.inputs) inputs.push_back(operands[static_cast<std::size_t>(i)]);
    for (const int i : step.outputs) outputs.push_back(operands[static_cast<std::size_t>(i)]);
    kernels_[at]({inputs, outputs, std::ssize(call.groups), step.attributes, call.state},
                 ring_.stream());
  }

  RowGroups groups_;
  ArgumentRing& ring_;
  std::vector<RowKernel> kernels_;  // by step
};

}  // namespace

std::unique_ptr<RowWork> make_row_work(RowProgram program, ArgumentRing& ring) {
  return std::make_unique<CudaRowWork>(std::move(program), ring);
}

}  // namespace ooc::cuda
