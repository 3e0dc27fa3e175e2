// Kernels and hosts with one mistake each. CTest says what has to notice it (tests/CMakeLists.txt).
#include "tests/cuda/faults/faults.h"

#include <cooperative_groups.h>

#include <cstdio>
#include <vector>

#include "kernels/cuda/launch_cuda.h"
#include "kernels/cuda/shared_cuda.h"
#include "tests/support/cuda/control.h"

namespace ooc::test {
namespace {

namespace cg = cooperative_groups;
using cuda::check;
using cuda::launch;

__global__ void touch(float* x, int i) { x[i] = 1; }
__global__ void shared_unwritten(float* y) {
  __shared__ float s[64];
  if (threadIdx.x != 5) s[threadIdx.x] = 1;
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x];
}
__global__ void dynamic_unwritten(float* y) {
  const auto* s = reinterpret_cast<const float*>(shared_bytes);
  y[threadIdx.x] = s[threadIdx.x];
}
__global__ void barrier_in_branch(float* y) {
  if (threadIdx.x < 40) __syncthreads();
  y[threadIdx.x] = __shfl_sync(0xffffffffu, 1.0f, 0);
  if (threadIdx.x >= 40) __syncthreads();
}
__global__ void lane_missing(float* y) {
  if (threadIdx.x % 32 < 31) y[threadIdx.x] = __shfl_xor_sync(0xffffffffu, 1.0f, 1);
  __syncthreads();
}
__global__ void warp_assumed_in_step(float* y) {
  __shared__ float s[32];
  s[threadIdx.x] = static_cast<float>(threadIdx.x);
  y[threadIdx.x] = s[31 - threadIdx.x];  // no __syncwarp()
}
__global__ void tiles(float* y) {
  const auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  float v = static_cast<float>(threadIdx.x);
  for (int d = 4; d > 0; d /= 2) v += tile.shfl_xor(v, d);
  if (tile.thread_rank() == 0) y[tile.meta_group_rank()] = v;
}

float* device_floats(std::size_t count, cudaStream_t stream) {
  void* at = nullptr;
  check(cudaMallocAsync(&at, count * sizeof(float), stream), "memory");
  check(cudaMemsetAsync(at, 0, count * sizeof(float), stream), "zeroing");
  check(cudaStreamSynchronize(stream), "waiting");
  return static_cast<float*>(at);
}

cudaStream_t stream_of(int device) {
  cudaStream_t stream = nullptr;
  check(cudaSetDevice(device), "choosing the device");
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
  return stream;
}

}  // namespace

void make_fault(int number, bool lazy) {
  using cuda_emulation::Order;
  cuda_emulation::reset({.devices = 2}, lazy ? Order::kLazy : Order::kEager);
  const cudaStream_t other = stream_of(1), s = stream_of(0);
  float* const x = device_floats(64, s);
  if (number == 0) launch(tiles, {1, 64}, s, x);       // no mistake
  if (number == 1) launch(touch, {1, 1}, s, x, 5000);  // after an allocation
  if (number == 2) launch(shared_unwritten, {1, 64}, s, x);
  if (number == 3) launch(dynamic_unwritten, {1, 64, 256}, s, x);
  if (number == 4) launch(barrier_in_branch, {1, 64}, s, x);
  if (number == 5) launch(lane_missing, {1, 64}, s, x);
  if (number == 6) launch(warp_assumed_in_step, {1, 32}, s, x);
  if (number == 7) x[3] = 1;                                // the host in device memory
  if (number == 8) launch(touch, {1, 1}, other, x, 3);      // another device's memory
  if (number == 9) launch(touch, {1, 2048}, s, x, 3);       // too many threads
  if (number == 10) launch(touch, {1, 1, 60000}, s, x, 3);  // shared memory not asked for
  if (number == 11) launch(touch, {1, 1}, nullptr, x, 3);   // the default stream
  if (number == 12) {                                       // after its end
    check(cudaFreeAsync(x, s), "freeing");
    launch(touch, {1, 1}, s, x, 3);
  }
  if (number == 13) device_floats(std::size_t{1} << 30, s);  // more than there is
  std::vector<float> y(64);
  check(cudaMemcpyAsync(y.data(), x, 256, cudaMemcpyDeviceToHost, s), "copying");
  check(cudaStreamSynchronize(s), "waiting");
  std::printf("in memory:");
  for (const float value : y) std::printf(" %g", value);
  std::printf("\n");
}

}  // namespace ooc::test
