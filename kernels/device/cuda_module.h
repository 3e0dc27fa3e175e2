// The module of the GPUs, libooc_cuda.so: programs open it where a GPU is wanted, so that whoever
// has none needs nothing of NVIDIA's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "kernels/device/backend.h"

namespace ooc {

struct GpuFacts {
  std::string name;
  std::int64_t total_bytes = 0, free_bytes = 0;  // of its memory, while its context is there
  std::int64_t context_bytes = 0;                // of it, at most, what the context took
  double bandwidth = 0;                          // bytes a second of its memory
};

// Threads: all of it may be called from many.
class CudaModule {
 public:
  virtual ~CudaModule() = default;
  virtual bool has_driver() = 0;
  // Of GPUs. DeviceError where there is no driver, or one that is too old.
  virtual int count() = 0;
  // Where a GPU is among the machine's devices, as 0000:41:00.0. DeviceError.
  virtual std::string pci_address(int index) = 0;
  // Whether two of them have a link of their own, NVLink.
  virtual bool has_link(int from, int to) = 0;
  // Makes the GPU's context; it stays. DeviceError where there is no such GPU, or it is too old.
  virtual GpuFacts open(int index) = 0;
  // Of a GPU that is open; it gives out so many bytes at most, or what is free there (0).
  virtual std::unique_ptr<Backend> make_backend(int index, std::int64_t memory_bytes) = 0;
  virtual bool has_kernel(std::string_view op, DType real) const = 0;
  virtual bool has_kernel(const EdgeProgram& program) const = 0;
};

// What it exports: a text that differs where the headers that both sides share do, and itself.
inline constexpr const char* kCudaModuleKey = "ooc_cuda_module_key";
inline constexpr const char* kCudaModule = "ooc_cuda_module";
using CudaModuleKey = const char* (*)();
using CudaModuleEntry = CudaModule* (*)();

}  // namespace ooc
