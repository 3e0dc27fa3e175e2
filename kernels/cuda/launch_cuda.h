// Calls of the CUDA runtime that are checked, and the one place that launches kernels: `<<<>>>` is
// read by nvcc alone.
//
// Errors: DeviceError, with what was asked for and what CUDA says.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace ooc::cuda {

// `what`: "copying to the device". Throws unless the call succeeded.
[[noreturn]] void fail(cudaError_t error, const char* what);
inline void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) fail(error, what);
}

// The thread that calls works on this device from now on.
void use_device(int index);

struct LaunchShape {
  dim3 blocks, threads;
  std::size_t shared_bytes = 0;  // dynamic
};

// Blocks of kThreads for so many elements, each of which a thread takes alone or one of every
// gridDim.x * blockDim.x.
inline constexpr unsigned kThreads = 256;
inline LaunchShape shape_for(std::int64_t elements) {
  constexpr std::int64_t kMostBlocks = 4096;
  const std::int64_t blocks = (elements + kThreads - 1) / kThreads;
  return {dim3(static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks)), dim3(kThreads)};
}

// The arguments are converted to the kernel's parameters, as in a call.
template <class... Params, class... Args>
void launch(void (*kernel)(Params...), const LaunchShape& shape, cudaStream_t stream,
            Args&&... args) {
  cudaLaunchConfig_t config{};
  config.gridDim = shape.blocks;
  config.blockDim = shape.threads;
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = stream;
  check(cudaLaunchKernelEx(&config, kernel, std::forward<Args>(args)...), "launching a kernel");
}

}  // namespace ooc::cuda
