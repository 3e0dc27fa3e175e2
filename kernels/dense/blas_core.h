// Which of its kernels OpenBLAS computes products with: one "core" a kind of processor.
//
// OpenBLAS knows processors by their model numbers and takes one that it doesn't know for an old
// one, with SSE3 alone. Here what the processor can do decides (cpu_features.h), and a core is
// used only after it has multiplied some matrices right.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/dense/cpu_features.h"

namespace ooc {

struct BlasCore {
  std::string name;                             // as OpenBLAS calls it: "Cooperlake", "Haswell"
  VectorSet uses = VectorSet::kOther;           // its instructions
  VectorSet processor_has = VectorSet::kOther;  // what it could use
  std::string told;                             // OPENBLAS_CORETYPE, where that is a core
  std::vector<std::string> wrong;               // cores that were tried first and computed wrong

  // Whether the processor has wider vectors than the core uses. BF16 is no wider, and products of
  // fp32 don't use it.
  bool is_below_processor() const;
};

// "OpenBLAS's Haswell kernels (AVX2)"; without vectors that are known, without the brackets.
std::string description_of(const BlasCore& core);

// The library as the choice sees it; tests put another one in its place.
struct BlasLibrary {
  std::function<std::string()> core;                 // the one in use now
  std::function<void(const std::string& name)> use;  // one that its processor can run
  std::function<bool()> multiplies_right;            // with the core in use
};

// Makes the library use the best core: its own choice if that uses all of `processor`'s vectors;
// otherwise the widest one below them that multiplies right. What the user told it by
// OPENBLAS_CORETYPE (`told`, empty: nothing) stays, unless OpenBLAS has no such core and so took
// another one.
// Throws UsageError if the processor lacks the instructions of the core that the user told it,
// DeviceError if no core multiplies right.
BlasCore choose_blas_core(const BlasLibrary& library, VectorSet processor, const std::string& told);

// The core of this process, chosen in the first call. Every backend of the CPU calls it before it
// is asked for a product. The first call sets and restores an environment variable, so no other
// thread may read the environment meanwhile. Throws as choose_blas_core().
const BlasCore& blas_core();

// Whether gemm() gives the products of small matrices of integers exactly: transposed and not,
// in place of what was there and added to it, of sizes that OpenBLAS packs and doesn't.
bool blas_multiplies_right();

}  // namespace ooc
