#include "kernels/device/cpu_backend.h"

#include <atomic>
#include <cstring>
#include <map>
#include <utility>

#include "kernels/dense/blas.h"
#include "kernels/dense/blas_core.h"
#include "kernels/device/host_buffer.h"
#include "kernels/edges/edge_kernel_cpu.h"
#include "kernels/optimizer/optimizer_cpu.h"
#include "kernels/rows/cpu_row_kernels.h"
#include "kernels/spec/row_kernels.h"
#include "storage/base/errors.h"
#include "storage/base/half.h"

namespace ooc {
namespace {

struct KernelPair {
  RowKernel fp32 = nullptr;
  RowKernel fp64 = nullptr;
};

// A built-in kernel after the checks of its specification.
template <class T, const char* Name, RowKernel Kernel>
void checked(const OperatorCall& call) {
  static const RowKernelSpec& spec = row_kernel_spec(Name);
  if (check_call(spec, DTypeOf<T>::value, call) > 0) Kernel(call);
}

using KernelTable = std::map<std::string, KernelPair, std::less<>>;

KernelTable built_in_kernels() {
  KernelTable table;
#define OOC_KERNEL(name)                                                         \
  {                                                                              \
    static constexpr char kName[] = #name;                                       \
    table.emplace(kName, KernelPair{checked<float, kName, cpu::name<float>>,     \
                                    checked<double, kName, cpu::name<double>>}); \
  }
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

class CpuBackend final : public Backend {
 public:
  CpuBackend() {
    check_blas_is_serial();
    blas_core();
  }

  const std::string& name() const override { return name_; }
  bool host_accessible() const override { return true; }

  std::unique_ptr<DeviceBuffer> allocate(std::size_t bytes) override {
    return make_host_buffer(bytes, name_);
  }
  std::int64_t memory_peak() const override { return 0; }
  void copy(void* to, const void* from, std::size_t bytes, CopyKind) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  void zero(void* data, std::size_t bytes) override {
    if (bytes > 0) std::memset(data, 0, bytes);
  }
  // Everything issued before has run already.
  Event record() override { return {events_.fetch_add(1) + 1}; }
  void wait(Event event) override { OOC_CHECK(event.value <= events_.load()); }

  RowKernel row_kernel(std::string_view op, DType dtype) const override {
    const auto found = row_kernels().find(op);
    if (found == row_kernels().end()) unknown("row", op, dtype);
    if (dtype == DType::kF32 && found->second.fp32 != nullptr) return found->second.fp32;
    if (dtype == DType::kF64 && found->second.fp64 != nullptr) return found->second.fp64;
    unknown("row", op, dtype);
  }
  std::unique_ptr<EdgeKernel> edge_kernel(const EdgeProgram& program) const override {
    return cpu::make_edge_kernel(program);
  }
  void optimize(const OptimizerStep& step) override { cpu::optimize(step); }
  void accumulate(DType dtype, std::int64_t count, void* to, const void* from) override {
    OOC_CHECK(dtype == DType::kF32 || dtype == DType::kF64);
    if (dtype == DType::kF32) {
      add_to(static_cast<float*>(to), static_cast<const float*>(from), count);
    } else {
      add_to(static_cast<double*>(to), static_cast<const double*>(from), count);
    }
  }
  void widen(DType from_dtype, const void* from, DType to_dtype, void* to,
             std::int64_t count) override {
    ooc::widen(from_dtype, from, to_dtype, to, static_cast<std::size_t>(count));
  }

 private:
  std::string name_ = "cpu";
  std::atomic<std::uint64_t> events_ = 0;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend() { return std::make_unique<CpuBackend>(); }

void register_cpu_row_kernel(std::string_view op, RowKernel fp32, RowKernel fp64) {
  const bool added = row_kernels().emplace(op, KernelPair{fp32, fp64}).second;
  OOC_CHECK(added && "a CPU row kernel of this name is there already");
}

}  // namespace ooc
