#include "kernels/cuda/launch_cuda.h"

#include <string>

#include "storage/base/errors.h"

namespace ooc::cuda {

namespace {

thread_local int device_in_use = 0;  // a device that is lost says nothing

}  // namespace

void fail(cudaError_t error, const char* what) {
  throw DeviceError(std::string(what) + ": " + cudaGetErrorString(error),
                    "cuda:" + std::to_string(device_in_use),
                    error == cudaErrorMemoryAllocation
                        ? "give it less --device-memory"
                        : "look at nvidia-smi and dmesg, then go on with --resume");
}

void use_device(int index) {
  device_in_use = index;
  check(cudaSetDevice(index), "choosing the device");
}

}  // namespace ooc::cuda
