#include "kernels/cuda/launch_cuda.h"

#include <string>

#include "storage/base/errors.h"

namespace ooc::cuda {

void fail(cudaError_t error, const char* what) {
  int device = -1;
  cudaGetDevice(&device);
  throw DeviceError(std::string(what) + ": " + cudaGetErrorString(error),
                    "cuda:" + std::to_string(device),
                    error == cudaErrorMemoryAllocation ? "give it less --device-memory"
                                                       : "look at nvidia-smi and dmesg");
}

void use_device(int index) { check(cudaSetDevice(index), "choosing the device"); }

}  // namespace ooc::cuda
