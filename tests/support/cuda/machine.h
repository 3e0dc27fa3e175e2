// The emulated machine: devices with memory of their own, streams, events, and whose turn it is.
//
// A stream is a queue and a thread that does its work, one piece when it is told to: only one
// thread of all works at a time, in an order that is the same for the same seed. To ThreadSanitizer
// streams and the host are ordered by what CUDA orders (issue, events, waits), nothing else.
// Device memory lies in an arena per device that the host cannot touch (memory protection keys,
// else mprotect), with a gap after each allocation; addresses are never used twice.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <unordered_map>
#include <vector>

#include "tests/support/cuda/control.h"
#include "tests/support/cuda/sanitizers.h"

struct CUevent_st {
  std::uint64_t recorded = 0;  // records issued
  std::uint64_t reached = 0;   // records that streams have come to
  std::shared_ptr<int> token = std::make_shared<int>(0);
};

struct CUstream_st {
  struct Work {
    std::function<void()> run;
    CUevent_st* event = nullptr;  // to wait for, until `reached` is `value`
    std::uint64_t value = 0;
  };
  int device = 0;
  std::deque<Work> queue;
  int issued = 0, done = 0;  // what the sanitizer is told by
  enum Turn { kHost, kStream, kEnd };
  std::atomic<int> turn{kHost};
  std::thread worker;

  explicit CUstream_st(int on_device) : device(on_device), worker([this] { work(); }) {}
  ~CUstream_st() {
    give_turn(kEnd);
    worker.join();
  }
  void give_turn(Turn to) {
    turn.store(to);
    turn.notify_all();
  }
  void run_front() {
    give_turn(kStream);
    turn.wait(kStream);
  }
  void work() {
    for (;;) {
      turn.wait(kHost);
      if (turn.load() == kEnd) return;
      {
        const Work front = std::move(queue.front());
        queue.pop_front();
        if (front.event != nullptr) {
          cuda_emulation::acquire(front.event->token.get());
        } else {
          cuda_emulation::acquire(&issued);
          front.run();
        }
      }
      cuda_emulation::release(&done);
      give_turn(kHost);
    }
  }
};

namespace cuda_emulation {

inline constexpr std::size_t kArenaBytes = std::size_t{16} << 30;  // addresses, not memory
inline constexpr std::size_t kPage = 4096;

struct Allocation {
  std::size_t bytes = 0, pages = 0;
  cudaStream_t stream = nullptr;
};

struct Device {
  std::byte* arena = nullptr;
  std::size_t next = 0, used = 0, peak = 0;
  std::map<std::byte*, Allocation> live;
  std::set<int> peers;
};

struct State {
  std::recursive_mutex mutex;
  Machine machine;
  Order order = Order::kEager;
  std::uint64_t random = 1;
  std::vector<Device> devices;
  std::set<cudaStream_t> streams;
  std::set<cudaEvent_t> events;
  std::map<std::byte*, std::size_t> pinned;
  std::unordered_map<const void*, std::size_t> shared_limit;
  Counters counters;
  int calls_left = -1;
  bool is_lost = false;  // and so are all calls after it
  cudaError_t injected = cudaSuccess, last = cudaSuccess;
};
extern State& state;
extern thread_local int current_device;
extern thread_local bool in_stream;  // a host function of a stream runs on this thread

// Device memory is open only while work of that device runs, and only for the thread it runs on.
int key_of(int device);  // for memory protection; -1: without keys
void protect(int device, bool open);
class OpenMemory {
 public:
  explicit OpenMemory(int device) {
    devices_.push_back(device);
    for (int peer : state.devices[static_cast<std::size_t>(device)].peers) devices_.push_back(peer);
    for (int d : devices_) protect(d, true);
  }
  OpenMemory(int a, int b) : devices_{a, b} {
    for (int d : devices_) protect(d, true);
  }
  ~OpenMemory() {
    for (int d : devices_) protect(d, false);
  }
  OpenMemory(const OpenMemory&) = delete;

 private:
  std::vector<int> devices_;
};

int device_of(const void* p);  // -1: memory of the host
bool is_pinned(const void* p, std::size_t bytes);

bool can_run(const CUstream_st& stream);
// Runs one piece of work of some stream. False: nothing can run.
bool run_any();
void run_until(const std::function<bool()>& done, CUstream_st* preferred = nullptr);
void wait_for_all();
void issue(cudaStream_t stream, CUstream_st::Work work);
bool known(cudaStream_t stream);

cudaError_t set_last(cudaError_t error);
// Every call but those that free: counted, and failed where a test asks for it.
cudaError_t begin_call();

#define CALL()                                                   \
  const std::lock_guard<std::recursive_mutex> lock(state.mutex); \
  if (const cudaError_t error = begin_call(); error != cudaSuccess) return error
#define FREEING_CALL() const std::lock_guard<std::recursive_mutex> lock(state.mutex)
#define NEEDS(condition, error) \
  if (!(condition)) return set_last(error)

}  // namespace cuda_emulation
