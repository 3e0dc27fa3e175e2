// The runtime API's memory: of devices, stream-ordered, and the host's pinned one. Signatures are
// those of the toolkit's cuda_runtime_api.h.
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>

#include "tests/support/cuda/cuda_emulation.h"
#include "tests/support/cuda/grid.h"
#include "tests/support/cuda/machine.h"

using namespace cuda_emulation;

namespace {

std::byte* new_address(Device& device, std::size_t bytes, cudaStream_t stream) {
  const std::size_t pages = (bytes + kPage - 1) / kPage * kPage;
  if (device.next + pages + kPage > kArenaBytes)
    fault("the emulated arena's addresses are used up");
  std::byte* at = device.arena + device.next;
  device.next += pages + kPage;
  device.used += bytes;
  device.peak = std::max(device.peak, device.used);
  state.counters.device_peak = std::max(state.counters.device_peak, device.peak);
  device.live[at] = {bytes, pages, stream};
  return at;
}

void map_memory(int device, std::byte* at, std::size_t bytes) {
  const std::size_t pages = (bytes + kPage - 1) / kPage * kPage;
  const int key = key_of(device);
  if (key >= 0) {
    pkey_mprotect(at, pages, PROT_READ | PROT_WRITE, key);
  } else {
    mprotect(at, pages, PROT_READ | PROT_WRITE);
  }
  const OpenMemory open(device);
  std::memset(at, 0xff, bytes);
  forbid(at + bytes, pages - bytes);
}

void unmap_memory(int device, std::byte* at) {
  Device& d = state.devices[static_cast<std::size_t>(device)];
  const Allocation a = d.live.at(at);
  permit(at, a.pages);
  mprotect(at, a.pages, PROT_NONE);
  madvise(at, a.pages, MADV_DONTNEED);
  d.used -= a.bytes;
  d.live.erase(at);
}

// Whether a copy of memory that isn't pinned is done when its call returns: CUDA says that it might
// be. Always where a call is to fail: whoever gives up lets go of the memory.
bool copies_at_once() {
  return state.order == Order::kEager || state.calls_left >= 0 ||
         (state.order == Order::kShuffled && next_random(state.random) % 2 == 0);
}

cudaError_t copy_in_stream(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  const int to_device = device_of(to), from_device = device_of(from);
  const auto run = [=] {
    const OpenMemory open(to_device >= 0 ? to_device : stream->device,
                          from_device >= 0 ? from_device : stream->device);
    std::memcpy(to, from, bytes);
  };
  if (to_device >= 0 && from_device >= 0 && to_device != from_device) {
    const int other = stream->device == to_device ? from_device : to_device;
    if (state.devices[static_cast<std::size_t>(stream->device)].peers.count(other) == 0) {
      ++state.counters.copied_through_host;
    }
  }
  const bool pageable =
      (to_device < 0 && !is_pinned(to, bytes)) || (from_device < 0 && !is_pinned(from, bytes));
  issue(stream, {run});
  if (pageable && copies_at_once()) {
    ++state.counters.copied_sync;
    run_until([&] { return stream->queue.empty(); }, stream);
    acquire(&stream->done);
  }
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaMallocAsync(void** at, std::size_t bytes, cudaStream_t stream) {
  CALL();
  NEEDS(known(stream), cudaErrorInvalidResourceHandle);
  Device& device = state.devices[static_cast<std::size_t>(stream->device)];
  NEEDS(device.used + bytes <= state.machine.device_bytes, cudaErrorMemoryAllocation);
  std::byte* address = new_address(device, bytes, stream);
  issue(stream, {[d = stream->device, address, bytes] { map_memory(d, address, bytes); }});
  *at = address;
  return cudaSuccess;
}
cudaError_t cudaFreeAsync(void* at, cudaStream_t stream) {
  FREEING_CALL();
  const int device = device_of(at);
  NEEDS(known(stream) && device >= 0, cudaErrorInvalidValue);
  issue(stream, {[device, at] { unmap_memory(device, static_cast<std::byte*>(at)); }});
  return cudaSuccess;
}
// A device's only pool is known by the device. What was freed stays in none.
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  CALL();
  NEEDS(device >= 0 && device < state.machine.devices, cudaErrorInvalidDevice);
  *pool = reinterpret_cast<cudaMemPool_t>(&state.devices[static_cast<std::size_t>(device)]);
  return cudaSuccess;
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, std::size_t) {
  CALL();
  return cudaSuccess;
}
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* access,
                                 std::size_t count) {
  CALL();
  const auto owner = static_cast<int>(reinterpret_cast<Device*>(pool) - state.devices.data());
  for (const cudaMemAccessDesc& to : std::span(access, count)) {
    NEEDS(state.machine.peers && to.location.type == cudaMemLocationTypeDevice &&
              to.location.id < state.machine.devices,
          cudaErrorInvalidDevice);
    state.devices[static_cast<std::size_t>(to.location.id)].peers.insert(owner);
  }
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  CALL();
  NEEDS(known(stream), cudaErrorInvalidResourceHandle);
  const bool to_host = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost;
  const bool from_host = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost;
  NEEDS(kind == cudaMemcpyDefault ||
            (to_host == (device_of(to) < 0) && from_host == (device_of(from) < 0)),
        cudaErrorInvalidValue);
  return copy_in_stream(to, from, bytes, stream);
}
cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                                std::size_t bytes, cudaStream_t stream) {
  CALL();
  NEEDS(known(stream) && device_of(to) == to_device && device_of(from) == from_device,
        cudaErrorInvalidValue);
  return copy_in_stream(to, from, bytes, stream);
}
cudaError_t cudaMemsetAsync(void* at, int value, std::size_t bytes, cudaStream_t stream) {
  CALL();
  NEEDS(known(stream) && device_of(at) >= 0, cudaErrorInvalidValue);
  issue(stream, {[=] {
          const OpenMemory open(device_of(at));
          std::memset(at, value, bytes);
        }});
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** at, std::size_t bytes, unsigned) {
  CALL();
  *at = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
  std::memset(*at, 0xff, bytes);
  state.pinned[static_cast<std::byte*>(*at)] = bytes;
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* at) {
  FREEING_CALL();
  NEEDS(state.pinned.erase(static_cast<std::byte*>(at)) == 1, cudaErrorInvalidValue);
  wait_for_all();
  std::free(at);
  return cudaSuccess;
}
cudaError_t cudaHostRegister(void* at, std::size_t bytes, unsigned) {
  CALL();
  state.pinned[static_cast<std::byte*>(at)] = bytes;
  std::size_t pinned = 0;
  for (const auto& [begin, length] : state.pinned) pinned += length;
  state.counters.pinned_peak = std::max(state.counters.pinned_peak, pinned);
  return cudaSuccess;
}
cudaError_t cudaHostUnregister(void* at) {
  FREEING_CALL();
  NEEDS(state.pinned.erase(static_cast<std::byte*>(at)) == 1, cudaErrorHostMemoryNotRegistered);
  return cudaSuccess;
}
}  // extern "C"
