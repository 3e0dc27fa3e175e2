#include "kernels/device/cpu_backend.h"

#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kernels/dense/blas.h"
#include "kernels/dense/blas_core.h"
#include "kernels/device/host_buffer.h"
#include "kernels/device/inline_queue.h"
#include "kernels/edges/edge_work_cpu.h"
#include "kernels/optimizer/optimizer_cpu.h"
#include "kernels/rows/cpu_row_kernels.h"
#include "kernels/rows/row_work_cpu.h"
#include "storage/base/errors.h"

namespace ooc {
namespace {

struct KernelPair {
  RowKernel fp32 = nullptr;
  RowKernel fp64 = nullptr;
};

using KernelTable = std::map<std::string, KernelPair, std::less<>>;

KernelTable built_in_kernels() {
  KernelTable table;
#define OOC_KERNEL(name) table.emplace(#name, KernelPair{cpu::name<float>, cpu::name<double>});
  OOC_CPU_ROW_KERNELS(OOC_KERNEL)
#undef OOC_KERNEL
  return table;
}

KernelTable& row_kernels() {
  static KernelTable table = built_in_kernels();
  return table;
}

[[noreturn]] void unknown(std::string_view kind, std::string_view name, DType dtype) {
  std::string message("the CPU backend has a ");
  message.append(kind).append(" kernel '").append(name).append("' for ").append(dtype_name(dtype));
  check_failed(message.c_str(), __FILE__, __LINE__);
}

template <class T>
void add_to(T* __restrict to, const T* __restrict from, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] += from[i];
}

// Of the steps of a program.
template <class Step>
std::vector<RowKernel> kernels_of(const std::vector<Step>& steps, DType real) {
  std::vector<RowKernel> kernels;
  for (const Step& step : steps) kernels.push_back(cpu_row_kernel(step.op, real));
  return kernels;
}

class CpuBackend final : public Backend {
 public:
  CpuBackend() {
    check_blas_is_serial();
    blas_core();
  }

  const std::string& name() const override { return name_; }
  const ComputeShape& shape() const override { return shape_; }
  bool host_accessible() const override { return true; }

  std::unique_ptr<DeviceBuffer> allocate(std::size_t bytes) override {
    return make_host_device_buffer(bytes, name_);
  }
  std::unique_ptr<PinnedBuffer> allocate_pinned(std::size_t bytes,
                                                std::string_view owner) override {
    return make_host_pinned_buffer(bytes, owner);
  }
  std::int64_t memory_peak() const override { return 0; }
  Queue& queue(QueueKind) override { return queue_; }

  void optimize(const OptimizerStep& step) override { cpu::optimize(step); }
  void accumulate(DType dtype, std::int64_t count, void* to, const void* from) override {
    OOC_CHECK(dtype == DType::kF32 || dtype == DType::kF64);
    if (dtype == DType::kF32) {
      add_to(static_cast<float*>(to), static_cast<const float*>(from), count);
    } else {
      add_to(static_cast<double*>(to), static_cast<const double*>(from), count);
    }
  }

 private:
  std::unique_ptr<RowWork> make_row_work(const RowProgram& program) const override {
    return cpu::make_row_work(program, kernels_of(program.steps, program.real));
  }
  std::unique_ptr<EdgeWork> make_edge_work(const EdgeProgram& program) const override {
    return cpu::make_edge_work(program, kernels_of(program.steps, program.real));
  }

  std::string name_ = "cpu";
  ComputeShape shape_;
  InlineQueue queue_;
};

}  // namespace

RowKernel cpu_row_kernel(std::string_view op, DType dtype) {
  const auto found = row_kernels().find(op);
  if (found == row_kernels().end()) unknown("row", op, dtype);
  if (dtype == DType::kF32 && found->second.fp32 != nullptr) return found->second.fp32;
  if (dtype == DType::kF64 && found->second.fp64 != nullptr) return found->second.fp64;
  unknown("row", op, dtype);
}

std::unique_ptr<Backend> make_cpu_backend() { return std::make_unique<CpuBackend>(); }

void register_cpu_row_kernel(std::string_view op, RowKernel fp32, RowKernel fp64) {
  const bool added = row_kernels().emplace(op, KernelPair{fp32, fp64}).second;
  OOC_CHECK(added && "a CPU row kernel of this name is there already");
}

}  // namespace ooc
