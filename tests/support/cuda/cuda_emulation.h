// Runs CUDA C++ on the CPU, for tests: the device's side. Forced into every .cu that g++ or clang++
// compiles as C++ (-x c++ -include cuda_emulation.h); sources say nothing of it. Types and API come
// from the toolkit's own headers; this adds what only nvcc knows. The host's side, the runtime API,
// is defined in runtime.cc with the signatures of those headers.
//
// A block's threads are fibers of one host thread, a grid's blocks run one after the other, in the
// order that set_order() says. Every fault (a barrier that not all reach, a shuffle from a lane
// that isn't there, too much shared memory) ends the process with a line that names the source.
#pragma once

// Shared memory is a thread_local of the only host thread that runs blocks: the same for all
// threads of a block, also where it is declared in a function. The toolkit's headers keep it.
#undef __shared__
#define __shared__ constinit thread_local
#define __launch_bounds__(...)

#include <cuda_runtime.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

#undef __noinline__  // the toolkit's macro breaks libstdc++'s attributes

namespace cuda_emulation {

// A place in the source, of a call that has this as its last default argument.
struct Where {
  const char* file = "";
  int line = 0;
  static constexpr Where current(const char* f = __builtin_FILE(), int l = __builtin_LINE()) {
    return {f, l};
  }
};

extern int lane;  // of the thread that runs

// All live lanes in `mask` meet; each gets combine(their values, mask, own lane, own argument).
using Combine = std::uint64_t (*)(const std::uint64_t* values, std::uint32_t mask, int lane,
                                  std::uint64_t argument);
std::uint64_t meet_lanes(std::uint32_t mask, const char* what, Combine combine, std::uint64_t value,
                         std::uint64_t argument, Where where);
enum class Vote { kCount, kAnd, kOr };
int meet_block(const char* what, Vote vote, bool predicate, Where where);
std::uint32_t live_lanes();
// cp.async: bytes move when they are waited for, not before.
void copy_later(void* to, const void* from, std::size_t bytes, std::size_t zeros);
void commit_copies();
void wait_copies(unsigned still_open);
[[noreturn]] void fault(const char* what, Where where = Where::current());

cudaError_t enqueue_kernel(const cudaLaunchConfig_t& config, const void* kernel,
                           std::function<void()> thread_body);

// cudaLaunchKernelEx() with the types of the arguments, which the runtime's C function lacks.
template <class... Params, class... Args>
cudaError_t launch(const cudaLaunchConfig_t* config, void (*kernel)(Params...), Args&&... args) {
  return enqueue_kernel(
      *config, reinterpret_cast<const void*>(kernel),
      [kernel, params = std::tuple<std::decay_t<Params>...>(std::forward<Args>(args)...)] {
        auto own = params;  // a thread's parameters are its own
        std::apply(kernel, own);
      });
}

// A launch with the addresses of the arguments, as generated kernels are started.
template <class... Params, std::size_t... kIndex>
std::function<void()> bind_each(void (*kernel)(Params...), void** args,
                                std::index_sequence<kIndex...>) {
  return [kernel, params = std::tuple<std::decay_t<Params>...>(
                      *static_cast<std::decay_t<Params>*>(args[kIndex])...)] {
    auto own = params;
    std::apply(kernel, own);
  };
}
template <class... Params>
std::function<void()> bind(void (*kernel)(Params...), void** args) {
  return bind_each(kernel, args, std::index_sequence_for<Params...>());
}

template <class T>
std::uint64_t to_bits(T value) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

template <class T>
T from_bits(std::uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <class T>
T shuffle(unsigned mask, T value, int source, const char* what, Where where) {
  if ((mask >> source & live_lanes() >> source & 1u) == 0) {
    fault("a lane reads a lane that isn't in the mask", where);
  }
  const auto pick = [](const std::uint64_t* values, std::uint32_t, int, std::uint64_t from) {
    return values[from];
  };
  return from_bits<T>(meet_lanes(mask, what, pick, to_bits(value), source, where));
}

template <class T, class Fold>
T fold_lanes(unsigned mask, T value, const char* what, Where where) {
  const auto fold = [](const std::uint64_t* values, std::uint32_t lanes, int, std::uint64_t) {
    T all = from_bits<T>(values[std::countr_zero(lanes)]);
    for (std::uint32_t rest = lanes & (lanes - 1); rest != 0; rest &= rest - 1) {
      all = Fold()(all, from_bits<T>(values[std::countr_zero(rest)]));
    }
    return to_bits(all);
  };
  return from_bits<T>(meet_lanes(mask, what, fold, to_bits(value), 0, where));
}

template <class T, class Change>
T update(T* at, Change change) {
  T old, next;
  __atomic_load(at, &old, __ATOMIC_RELAXED);
  do next = change(old);
  while (!__atomic_compare_exchange(at, &old, &next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return old;
}

template <class T>
using Plain = std::type_identity_t<T>;

}  // namespace cuda_emulation

#define cudaLaunchKernelEx cuda_emulation::launch
extern uint3 threadIdx, blockIdx;  // of the thread that runs
extern dim3 blockDim, gridDim;
inline constexpr int warpSize = 32;

using EmulatedWhere = cuda_emulation::Where;

// Barriers.
inline void __syncthreads(EmulatedWhere w = EmulatedWhere::current()) {
  cuda_emulation::meet_block("__syncthreads", cuda_emulation::Vote::kCount, true, w);
}
inline int __syncthreads_count(int p, EmulatedWhere w = EmulatedWhere::current()) {
  return cuda_emulation::meet_block("__syncthreads_count", cuda_emulation::Vote::kCount, p != 0, w);
}
inline int __syncthreads_and(int p, EmulatedWhere w = EmulatedWhere::current()) {
  return cuda_emulation::meet_block("__syncthreads_and", cuda_emulation::Vote::kAnd, p != 0, w);
}
inline int __syncthreads_or(int p, EmulatedWhere w = EmulatedWhere::current()) {
  return cuda_emulation::meet_block("__syncthreads_or", cuda_emulation::Vote::kOr, p != 0, w);
}
inline void __syncwarp(unsigned mask = 0xffffffffu, EmulatedWhere w = EmulatedWhere::current()) {
  const auto none = [](const std::uint64_t*, std::uint32_t, int, std::uint64_t) {
    return std::uint64_t{0};
  };
  cuda_emulation::meet_lanes(mask, "__syncwarp", none, 0, 0, w);
}
inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
[[noreturn]] inline void __trap() { cuda_emulation::fault("__trap"); }

// Shuffles, votes, reductions of a warp.
template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32,
              EmulatedWhere w = EmulatedWhere::current()) {
  const int first = cuda_emulation::lane & -width;
  return cuda_emulation::shuffle(mask, value, first + (source & (width - 1)), "__shfl_sync", w);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32,
                  EmulatedWhere w = EmulatedWhere::current()) {
  const int lane = cuda_emulation::lane;
  const int source = lane ^ lanes;
  const bool inside = source < (lane & -width) + width;
  return cuda_emulation::shuffle(mask, value, inside ? source : lane, "__shfl_xor_sync", w);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32,
                   EmulatedWhere w = EmulatedWhere::current()) {
  const int lane = cuda_emulation::lane;
  const int source = lane + static_cast<int>(delta);
  const bool inside = source < (lane & -width) + width;
  return cuda_emulation::shuffle(mask, value, inside ? source : lane, "__shfl_down_sync", w);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32,
                 EmulatedWhere w = EmulatedWhere::current()) {
  const int lane = cuda_emulation::lane;
  const int source = lane - static_cast<int>(delta);
  const bool inside = source >= (lane & -width);
  return cuda_emulation::shuffle(mask, value, inside ? source : lane, "__shfl_up_sync", w);
}
inline unsigned __ballot_sync(unsigned mask, int predicate,
                              EmulatedWhere w = EmulatedWhere::current()) {
  const auto ballot = [](const std::uint64_t* values, std::uint32_t lanes, int, std::uint64_t) {
    std::uint64_t bits = 0;
    for (int i = 0; i < 32; ++i) bits |= (lanes >> i & 1u & values[i]) << i;
    return bits;
  };
  return static_cast<unsigned>(
      cuda_emulation::meet_lanes(mask, "__ballot_sync", ballot, predicate != 0, 0, w));
}
inline int __any_sync(unsigned mask, int p, EmulatedWhere w = EmulatedWhere::current()) {
  return __ballot_sync(mask, p, w) != 0;
}
inline int __all_sync(unsigned mask, int p, EmulatedWhere w = EmulatedWhere::current()) {
  return __ballot_sync(mask, !p, w) == 0;
}
template <class T>
unsigned __match_any_sync(unsigned mask, T value, EmulatedWhere w = EmulatedWhere::current()) {
  const auto match = [](const std::uint64_t* values, std::uint32_t lanes, int lane, std::uint64_t) {
    std::uint64_t bits = 0;
    for (int i = 0; i < 32; ++i) {
      if (lanes >> i & 1u && values[i] == values[lane]) bits |= std::uint64_t{1} << i;
    }
    return bits;
  };
  return static_cast<unsigned>(cuda_emulation::meet_lanes(mask, "__match_any_sync", match,
                                                          cuda_emulation::to_bits(value), 0, w));
}
#define EMULATE_REDUCE(name, expression)                                                    \
  template <class T>                                                                        \
  T name(unsigned mask, T value, EmulatedWhere w = EmulatedWhere::current()) {              \
    static_assert(std::is_same_v<T, int> || std::is_same_v<T, unsigned>, "32-bit integer"); \
    struct Fold {                                                                           \
      T operator()(T a, T b) const { return expression; }                                   \
    };                                                                                      \
    return cuda_emulation::fold_lanes<T, Fold>(mask, value, #name, w);                      \
  }
EMULATE_REDUCE(__reduce_add_sync,
               static_cast<T>(static_cast<unsigned>(a) + static_cast<unsigned>(b)))
EMULATE_REDUCE(__reduce_min_sync, a < b ? a : b)
EMULATE_REDUCE(__reduce_max_sync, a < b ? b : a)
EMULATE_REDUCE(__reduce_or_sync, a | b)
EMULATE_REDUCE(__reduce_and_sync, a& b)
EMULATE_REDUCE(__reduce_xor_sync, a ^ b)
#undef EMULATE_REDUCE

// Atomics: what the hardware has, by compare and swap.
template <class T>
T atomicAdd(T* at, cuda_emulation::Plain<T> v) {
  return cuda_emulation::update(at, [v](T old) { return static_cast<T>(old + v); });
}
template <class T>
T atomicSub(T* at, cuda_emulation::Plain<T> v) {
  return cuda_emulation::update(at, [v](T old) { return static_cast<T>(old - v); });
}
template <class T>
T atomicMax(T* at, cuda_emulation::Plain<T> v) {
  return cuda_emulation::update(at, [v](T old) { return old < v ? v : old; });
}
template <class T>
T atomicMin(T* at, cuda_emulation::Plain<T> v) {
  return cuda_emulation::update(at, [v](T old) { return v < old ? v : old; });
}
template <class T>
T atomicOr(T* at, cuda_emulation::Plain<T> v) {
  return cuda_emulation::update(at, [v](T old) { return old | v; });
}
template <class T>
T atomicAnd(T* at, cuda_emulation::Plain<T> v) {
  return cuda_emulation::update(at, [v](T old) { return old & v; });
}
template <class T>
T atomicExch(T* at, cuda_emulation::Plain<T> v) {
  return cuda_emulation::update(at, [v](T) { return v; });
}
template <class T>
T atomicCAS(T* at, cuda_emulation::Plain<T> expected, cuda_emulation::Plain<T> v) {
  return cuda_emulation::update(at, [=](T old) { return old == expected ? v : old; });
}

// Loads and stores with a cache hint, integers, floats.
template <class T>
T __ldg(const T* at) {
  return *at;
}
template <class T>
T __ldcs(const T* at) {
  return *at;
}
template <class T>
T __ldcg(const T* at) {
  return *at;
}
template <class T>
void __stcs(T* at, cuda_emulation::Plain<T> v) {
  *at = v;
}
template <class T>
void __stcg(T* at, cuda_emulation::Plain<T> v) {
  *at = v;
}
inline int __popc(unsigned v) { return std::popcount(v); }
inline int __clz(int v) { return std::countl_zero(static_cast<unsigned>(v)); }
inline int __ffs(int v) { return v == 0 ? 0 : std::countr_zero(static_cast<unsigned>(v)) + 1; }
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<std::uint64_t>(a) * b >> 32; }
// Rounded by themselves: the emulated sources are compiled without contraction.
inline float __fmul_rn(float a, float b) { return a * b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline float __expf(float x) { return std::exp(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline float __int_as_float(int v) { return std::bit_cast<float>(v); }
inline int __float_as_int(float v) { return std::bit_cast<int>(v); }
inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a < b ? b : a; }
inline unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
inline unsigned max(unsigned a, unsigned b) { return a < b ? b : a; }
