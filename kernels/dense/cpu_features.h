// What instructions the processor has, read from CPUID, never from its model number: a library that
// knows processors by number takes an unknown one for an old one.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace ooc {

// Widening sets of vector instructions; each one includes those before it. kOther: an x86-64
// without AVX2, or another architecture.
enum class VectorSet { kOther, kAvx2, kAvx512, kAvx512Bf16 };

// "AVX2", "AVX-512", "AVX-512 with BF16"; "none of AVX2 and AVX-512" for kOther.
std::string_view name_of(VectorSet set);

struct CpuidRegisters {
  std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

// The seam to the processor; tests put other processors in its place.
struct Cpuid {
  std::function<CpuidRegisters(std::uint32_t leaf, std::uint32_t subleaf)> leaf;
  // XCR0: which registers the operating system saves for a thread. Called only if CPUID says that
  // the instruction is there.
  std::function<std::uint64_t()> xcr0;
};

// The widest set that the processor has and whose registers the operating system saves.
VectorSet vector_set_of(const Cpuid& cpuid);

// Of the processor that this runs on. Any thread.
VectorSet this_vector_set();

}  // namespace ooc
