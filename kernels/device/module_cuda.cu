#include <algorithm>
#include <string>

#include "kernels/cuda/launch_cuda.h"
#include "kernels/device/cuda_backend.h"
#include "kernels/device/cuda_module.h"
#include "kernels/rows/cuda_row_kernels.h"
#include "storage/base/errors.h"

namespace ooc::cuda {
namespace {

constexpr const char* kWhere = "--devices";
constexpr const char* kOnTheCpu = "or give --devices cpu";
constexpr int kOldest = 75;  // compute capability

std::string version(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

// Bytes a second: two transfers a cycle.
double bandwidth_of(int index) {
  int kilohertz = 0, bits = 0;
  if (cudaDeviceGetAttribute(&kilohertz, cudaDevAttrMemoryClockRate, index) != cudaSuccess ||
      cudaDeviceGetAttribute(&bits, cudaDevAttrGlobalMemoryBusWidth, index) != cudaSuccess) {
    return 0;
  }
  return 2e3 * kilohertz * bits / 8;
}

class Module final : public CudaModule {
 public:
  bool has_driver() override {
    int driver = 0;
    return cudaDriverGetVersion(&driver) == cudaSuccess && driver > 0;
  }

  int count() override {
    int driver = 0, runtime = 0, gpus = 0;
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
      throw DeviceError("there is no NVIDIA driver", kWhere,
                        std::string("install one, ") + kOnTheCpu);
    }
    check(cudaRuntimeGetVersion(&runtime), "asking for versions");
    const cudaError_t error = cudaGetDeviceCount(&gpus);
    if (error == cudaErrorInsufficientDriver) {
      throw DeviceError("the NVIDIA driver is too old: it is for CUDA " + version(driver) +
                            ", ooc needs one for " + version(runtime),
                        kWhere, std::string("update it, ") + kOnTheCpu);
    }
    if (error == cudaErrorNoDevice) return 0;
    check(error, "looking for GPUs");
    return gpus;
  }

  std::string pci_address(int index) override {
    constexpr int kLength = 32;
    char address[kLength] = {};
    check(cudaDeviceGetPCIBusId(address, kLength, index), "asking for a GPU's place");
    return address;
  }

  // Atomic operations of one on the other's memory need it.
  bool has_link(int from, int to) override {
    int atomics = 0;
    return from != to &&
           cudaDeviceGetP2PAttribute(&atomics, cudaDevP2PAttrNativeAtomicSupported, from, to) ==
               cudaSuccess &&
           atomics != 0;
  }

  GpuFacts open(int index) override {
    const int gpus = count();
    if (gpus == 0) {
      throw DeviceError("there is no GPU", kWhere, std::string("look at nvidia-smi, ") + kOnTheCpu);
    }
    if (index >= gpus) {
      throw DeviceError("there is no GPU of the number " + std::to_string(index) + " among " +
                            std::to_string(gpus),
                        kWhere, std::string("count them from 0, ") + kOnTheCpu);
    }
    cudaDeviceProp facts{};
    check(cudaGetDeviceProperties(&facts, index), "asking for a GPU's facts");
    if (facts.major * 10 + facts.minor < kOldest) {
      throw DeviceError(std::string(facts.name) + " is too old: its compute capability is " +
                            std::to_string(facts.major) + "." + std::to_string(facts.minor) +
                            ", the least is 7.5",
                        kWhere, std::string("take another GPU, ") + kOnTheCpu);
    }
    use_device(index);
    std::size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "asking for free memory");
    constexpr std::size_t kMostOfContext = 512 << 20;
    return {facts.name, static_cast<std::int64_t>(total), static_cast<std::int64_t>(free),
            static_cast<std::int64_t>(std::min(total - free, kMostOfContext)), bandwidth_of(index)};
  }

  std::unique_ptr<Backend> make_backend(int index, std::int64_t memory_bytes) override {
    return make_cuda_backend(index, memory_bytes);
  }
  bool has_kernel(std::string_view op, DType real) const override {
    return row_kernel(op, real) != nullptr;
  }
  bool has_kernel(const EdgeProgram& program) const override { return is_plain_sum(program); }
};

}  // namespace
}  // namespace ooc::cuda

#define OOC_EXPORT extern "C" __attribute__((visibility("default")))

OOC_EXPORT const char* ooc_cuda_module_key() { return OOC_MODULE_KEY; }

OOC_EXPORT ooc::CudaModule* ooc_cuda_module() {
  static ooc::cuda::Module module;
  return &module;
}
