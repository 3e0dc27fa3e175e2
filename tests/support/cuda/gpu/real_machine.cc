// What tests of the emulated machine ask for, on a GPU that is there: it takes no orders, and
// counts nothing. A process without a GPU ends as skipped.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>

#include "tests/support/cuda/control.h"

namespace cuda_emulation {
namespace {

struct SkipWithoutGpu {
  SkipWithoutGpu() {
    constexpr int kSkipped = 77;
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    if (error == cudaSuccess && count > 0) return;
    std::printf("skipped: no GPU: %s\n", cudaGetErrorString(error));
    std::fflush(stdout);
    std::_Exit(kSkipped);
  }
};

const SkipWithoutGpu skip;

}  // namespace

bool is_emulated() { return false; }
int devices() {
  int count = 0;
  cudaGetDeviceCount(&count);
  return count;
}
void reset(const Machine&, Order, std::uint64_t) {}
void fail_after(int, int) {}
void fail_from(int, int) {}
Counters counters() { return {}; }

}  // namespace cuda_emulation
