#include "kernels/dense/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace ooc {
namespace {

constexpr bool has(std::uint32_t bits, int bit) { return (bits >> bit & 1) != 0; }

#if defined(__x86_64__)

CpuidRegisters read_leaf(std::uint32_t leaf, std::uint32_t subleaf) {
  CpuidRegisters r;
  __cpuid_count(leaf, subleaf, r.eax, r.ebx, r.ecx, r.edx);
  return r;
}

std::uint64_t read_xcr0() {
  std::uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return std::uint64_t{high} << 32 | low;
}

#endif

}  // namespace

std::string_view name_of(VectorSet set) {
  switch (set) {
    case VectorSet::kAvx2:
      return "AVX2";
    case VectorSet::kAvx512:
      return "AVX-512";
    case VectorSet::kAvx512Bf16:
      return "AVX-512 with BF16";
    case VectorSet::kOther:
      break;
  }
  return "none of AVX2 and AVX-512";
}

VectorSet vector_set_of(const Cpuid& cpuid) {
  constexpr std::uint64_t kYmm = 0x6, kZmm = 0xe6;  // state components of XCR0
  const std::uint32_t last = cpuid.leaf(0, 0).eax;
  if (last < 7) return VectorSet::kOther;
  const CpuidRegisters basic = cpuid.leaf(1, 0), extended = cpuid.leaf(7, 0);
  const bool osxsave = has(basic.ecx, 27);
  const std::uint64_t saved = osxsave ? cpuid.xcr0() : 0;
  const bool fma = has(basic.ecx, 12), avx = has(basic.ecx, 28), avx2 = has(extended.ebx, 5);
  if (!fma || !avx || !avx2 || (saved & kYmm) != kYmm) return VectorSet::kOther;
  // F, DQ, CD, BW, VL: what kernels for Skylake's servers take for granted.
  const bool avx512 = has(extended.ebx, 16) && has(extended.ebx, 17) && has(extended.ebx, 28) &&
                      has(extended.ebx, 30) && has(extended.ebx, 31);
  if (!avx512 || (saved & kZmm) != kZmm) return VectorSet::kAvx2;
  const bool bf16 = extended.eax >= 1 && has(cpuid.leaf(7, 1).eax, 5);
  return bf16 ? VectorSet::kAvx512Bf16 : VectorSet::kAvx512;
}

VectorSet this_vector_set() {
#if defined(__x86_64__)
  static const VectorSet set = vector_set_of({read_leaf, read_xcr0});
  return set;
#else
  return VectorSet::kOther;
#endif
}

}  // namespace ooc
