#include <string>
#include <utility>

#include "kernels/cuda/argument_ring_cuda.h"
#include "kernels/cuda/launch_cuda.h"
#include "kernels/device/accumulate_cuda.h"
#include "kernels/device/cuda_backend.h"
#include "kernels/device/device_cuda.h"
#include "kernels/edges/edge_work_cuda.h"
#include "kernels/optimizer/optimizer_cuda.h"
#include "kernels/rows/row_work_cuda.h"

namespace ooc {
namespace cuda {
namespace {

class CudaBackend final : public Backend {
 public:
  CudaBackend(int index, std::int64_t memory_bytes)
      : device_(index, memory_bytes),
        pinned_(device_.allocate_pinned(kCudaRingBytes, "what kernels are told")),
        arguments_(device_.allocate(kCudaRingBytes)),
        ring_(index, {pinned_->data(), pinned_->bytes()}, arguments_->data(), stream()) {}

  const std::string& name() const override { return device_.name(); }
  const ComputeShape& shape() const override { return kCudaShape; }
  bool host_accessible() const override { return false; }

  std::unique_ptr<DeviceBuffer> allocate(std::size_t bytes) override {
    return device_.allocate(bytes);
  }
  std::unique_ptr<PinnedBuffer> allocate_pinned(std::size_t bytes,
                                                std::string_view owner) override {
    return device_.allocate_pinned(bytes, owner);
  }
  std::int64_t memory_peak() const override { return device_.memory_peak(); }
  Queue& queue(QueueKind kind) override { return device_.queue(kind); }

  void optimize(const OptimizerStep& step) override {
    use_device(device_.index());
    cuda::optimize(step, stream());
  }
  void accumulate(DType dtype, std::int64_t count, void* to, const void* from) override {
    use_device(device_.index());
    cuda::accumulate(dtype, count, to, from, stream());
  }
  void sum_leaves(const LeafSum& sum) override {
    use_device(device_.index());
    cuda::sum_leaves(sum, stream());
  }

 private:
  std::unique_ptr<RowWork> make_row_work(const RowProgram& program) const override {
    return cuda::make_row_work(program, ring_);
  }
  std::unique_ptr<EdgeWork> make_edge_work(const EdgeProgram& program) const override {
    return cuda::make_edge_work(program, ring_);
  }
  cudaStream_t stream() const { return device_.queue(QueueKind::kCompute).stream(); }

  mutable Device device_;
  std::unique_ptr<PinnedBuffer> pinned_;
  std::unique_ptr<DeviceBuffer> arguments_;
  mutable ArgumentRing ring_;
};

}  // namespace
}  // namespace cuda

std::unique_ptr<Backend> make_cuda_backend(int index, std::int64_t memory_bytes) {
  return std::make_unique<cuda::CudaBackend>(index, memory_bytes);
}

}  // namespace ooc
