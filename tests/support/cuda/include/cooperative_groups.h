// Stands for the toolkit's header of this name where kernels run on the CPU: blocks and tiles.
#pragma once

#include "tests/support/cuda/cuda_emulation.h"

namespace cooperative_groups {

class thread_block {
 public:
  unsigned thread_rank() const {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  }
  unsigned size() const { return blockDim.x * blockDim.y * blockDim.z; }
  void sync(EmulatedWhere w = EmulatedWhere::current()) const { __syncthreads(w); }
};

inline thread_block this_thread_block() { return {}; }

// kSize lanes of a warp.
template <unsigned kSize>
class thread_block_tile {
 public:
  static_assert(kSize <= 32 && (kSize & (kSize - 1)) == 0, "a tile of more than a warp");

  unsigned thread_rank() const { return static_cast<unsigned>(cuda_emulation::lane) % kSize; }
  static constexpr unsigned size() { return kSize; }
  unsigned meta_group_rank() const { return this_thread_block().thread_rank() / kSize; }
  void sync(EmulatedWhere w = EmulatedWhere::current()) const { __syncwarp(mask(), w); }
  template <class T>
  T shfl(T v, int source, EmulatedWhere w = EmulatedWhere::current()) const {
    return __shfl_sync(mask(), v, source, kSize, w);
  }
  template <class T>
  T shfl_xor(T v, int lanes, EmulatedWhere w = EmulatedWhere::current()) const {
    return __shfl_xor_sync(mask(), v, lanes, kSize, w);
  }
  template <class T>
  T shfl_down(T v, unsigned delta, EmulatedWhere w = EmulatedWhere::current()) const {
    return __shfl_down_sync(mask(), v, delta, kSize, w);
  }
  unsigned ballot(int p, EmulatedWhere w = EmulatedWhere::current()) const {
    return (__ballot_sync(mask(), p, w) & mask()) >> shift();
  }
  bool any(int p, EmulatedWhere w = EmulatedWhere::current()) const { return ballot(p, w) != 0; }

 private:
  unsigned shift() const { return static_cast<unsigned>(cuda_emulation::lane) / kSize * kSize; }
  unsigned mask() const {
    return static_cast<unsigned>((std::uint64_t{1} << kSize) - 1) << shift();
  }
};

template <unsigned kSize>
thread_block_tile<kSize> tiled_partition(const thread_block&) {
  return {};
}

template <class T>
struct plus {
  T operator()(T a, T b) const { return a + b; }
};

template <unsigned kSize, class T, class Fold>
T reduce(const thread_block_tile<kSize>& tile, T value, Fold fold) {
  for (unsigned distance = kSize / 2; distance > 0; distance /= 2) {
    value = fold(value, tile.shfl_xor(value, static_cast<int>(distance)));
  }
  return value;
}

}  // namespace cooperative_groups
