// The runtime API: devices, streams, events and launches. Signatures are those of the toolkit's
// cuda_runtime_api.h.
#include "tests/support/cuda/runtime.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>

#include "tests/support/cuda/cuda_emulation.h"
#include "tests/support/cuda/grid.h"
#include "tests/support/cuda/machine.h"
#include "tests/support/cuda/shared_memory.h"

namespace cuda_emulation {

cudaError_t enqueue_kernel(const cudaLaunchConfig_t& config, const void* kernel,
                           std::function<void()> thread_body) {
  CALL();
  NEEDS(known(config.stream), cudaErrorInvalidResourceHandle);
  const dim3 g = config.gridDim, b = config.blockDim;
  NEEDS(g.x > 0 && g.y > 0 && g.z > 0 && b.x > 0 && b.y > 0 && b.z > 0 && g.y <= 65535 &&
            g.z <= 65535 && g.x <= 0x7fffffff && b.x * b.y * b.z <= 1024 && b.z <= 64,
        cudaErrorInvalidConfiguration);
  const auto limit = state.shared_limit.find(kernel);
  NEEDS(config.dynamicSmemBytes <=
            (limit == state.shared_limit.end() ? kDefaultShared : limit->second),
        cudaErrorInvalidValue);
  ++state.counters.launches;
  issue(config.stream, {[grid = Grid{g, b, config.dynamicSmemBytes, kernel},
                         body = std::move(thread_body), stream = config.stream] {
          const OpenMemory open(stream->device);
          run_grid(grid, body);
        }});
  return cudaSuccess;
}

void enqueue(cudaStream_t stream, std::function<void()> work) {
  const std::lock_guard<std::recursive_mutex> lock(state.mutex);
  known(stream);
  issue(stream, {[stream, work = std::move(work)] {
          const OpenMemory open(stream->device);
          work();
        }});
}

}  // namespace cuda_emulation

using namespace cuda_emulation;

namespace {

// What a thread waits for comes late, while other threads go on.
void be_late() {
  constexpr std::chrono::microseconds kLate(100);
  bool late = false;
  {
    const std::lock_guard<std::recursive_mutex> lock(state.mutex);
    late = state.order == Order::kLazy ||
           (state.order == Order::kShuffled && next_random(state.random) % 4 == 0);
  }
  if (late) std::this_thread::sleep_for(kLate);
}

}  // namespace

extern "C" {

cudaError_t cudaDriverGetVersion(int* version) {
  CALL();
  *version = state.machine.driver;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  CALL();
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int device) {
  CALL();
  NEEDS(device >= 0 && device < state.machine.devices, cudaErrorInvalidDevice);
  *value = 0;
  return cudaErrorInvalidValue;
}
cudaError_t cudaGetDeviceCount(int* count) {
  CALL();
  *count = state.machine.devices;
  if (state.machine.driver < CUDART_VERSION) return cudaErrorInsufficientDriver;
  if (state.machine.devices == 0) return cudaErrorNoDevice;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  CALL();
  NEEDS(device >= 0 && device < state.machine.devices, cudaErrorInvalidDevice);
  current_device = device;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  CALL();
  *device = current_device;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int device) {
  CALL();
  NEEDS(device >= 0 && device < state.machine.devices, cudaErrorInvalidDevice);
  *p = {};
  std::snprintf(p->name, sizeof p->name, "emulated sm_90");
  p->totalGlobalMem = state.machine.device_bytes;
  p->major = state.machine.capability / 10;
  p->minor = state.machine.capability % 10;
  p->multiProcessorCount = 132;
  p->maxThreadsPerBlock = 1024;
  p->warpSize = 32;
  p->sharedMemPerBlock = kDefaultShared;
  p->sharedMemPerBlockOptin = kMaxShared;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* address, int length, int device) {
  CALL();
  NEEDS(device >= 0 && device < state.machine.devices, cudaErrorInvalidDevice);
  std::snprintf(address, static_cast<std::size_t>(length), "00AB:%02X:00.0", device + 1);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute, int from, int to) {
  CALL();
  NEEDS(from != to && attribute == cudaDevP2PAttrNativeAtomicSupported, cudaErrorInvalidValue);
  *value = state.machine.links ? 1 : 0;
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  CALL();
  *total = state.machine.device_bytes;
  *free = *total - state.devices[static_cast<std::size_t>(current_device)].used;
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  CALL();
  *can = state.machine.peers;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  CALL();
  NEEDS(state.machine.peers, cudaErrorPeerAccessUnsupported);
  NEEDS(state.devices[static_cast<std::size_t>(current_device)].peers.insert(peer).second,
        cudaErrorPeerAccessAlreadyEnabled);
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  CALL();
  NEEDS(attribute == cudaFuncAttributeMaxDynamicSharedMemorySize, cudaErrorNotSupported);
  NEEDS(value >= 0 && static_cast<std::size_t>(value) <= kMaxShared, cudaErrorInvalidValue);
  state.shared_limit[kernel] = static_cast<std::size_t>(value);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  CALL();
  NEEDS(flags == cudaStreamNonBlocking, cudaErrorNotSupported);
  *stream = new CUstream_st(current_device);
  state.streams.insert(*stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  CALL();
  NEEDS(known(stream), cudaErrorInvalidResourceHandle);
  run_until([&] { return stream->queue.empty(); }, stream);
  acquire(&stream->done);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  FREEING_CALL();
  NEEDS(known(stream), cudaErrorInvalidResourceHandle);
  run_until([&] { return stream->queue.empty(); }, stream);
  state.streams.erase(stream);
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  CALL();
  wait_for_all();
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  CALL();
  NEEDS(known(stream) && state.events.count(event) != 0, cudaErrorInvalidResourceHandle);
  if (event->recorded > 0) issue(stream, {{}, event, event->recorded});
  return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  CALL();
  NEEDS(known(stream), cudaErrorInvalidResourceHandle);
  issue(stream, {[=] {
          in_stream = true;
          function(data);
        }});
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  CALL();
  *event = new CUevent_st;
  state.events.insert(*event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  CALL();
  NEEDS(known(stream) && state.events.count(event) != 0, cudaErrorInvalidResourceHandle);
  const std::uint64_t value = ++event->recorded;
  issue(stream, {[event, value] {
          event->reached = std::max(event->reached, value);
          release(event->token.get());
        }});
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  CALL();
  if (event->reached < event->recorded) run_any();  // who polls gets there
  if (event->reached < event->recorded) return cudaErrorNotReady;
  acquire(event->token.get());
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  be_late();
  CALL();
  NEEDS(state.events.count(event) != 0, cudaErrorInvalidResourceHandle);
  run_until([&] { return event->reached >= event->recorded; });
  acquire(event->token.get());
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  FREEING_CALL();
  NEEDS(state.events.count(event) != 0, cudaErrorInvalidResourceHandle);
  run_until([&] { return event->reached >= event->recorded; });
  for (auto* s : state.streams) {  // waits that a stream hasn't come to
    for (auto& work : s->queue) {
      if (work.event == event) work = {[] {}};
    }
  }
  state.events.erase(event);
  delete event;
  return cudaSuccess;
}

cudaError_t cudaGetLastError() {
  const std::lock_guard<std::recursive_mutex> lock(state.mutex);
  return std::exchange(state.last, cudaSuccess);
}
const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorInvalidConfiguration:
      return "cudaErrorInvalidConfiguration";
    default:
      return "a CUDA error";
  }
}
const char* cudaGetErrorString(cudaError_t error) { return cudaGetErrorName(error); }

}  // extern "C"
