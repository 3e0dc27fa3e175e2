#include "kernels/dense/blas_core.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <set>

#include "kernels/dense/cpu_features.h"
#include "storage/base/errors.h"

namespace ooc::testing {
namespace {

// A processor that says what it can do by CPUID, and what the system saves of its registers.
struct FakeProcessor {
  std::uint32_t last_leaf = 0x1f;
  std::uint32_t model = 0;            // leaf 1, EAX
  std::uint32_t basic = 0;            // leaf 1, ECX
  std::uint32_t extended = 0;         // leaf 7, EBX
  std::uint32_t extended_leaves = 0;  // leaf 7, EAX
  std::uint32_t extended_1 = 0;       // leaf 7.1, EAX
  std::uint64_t saved = 0;

  VectorSet vectors() const {
    return vector_set_of({[this](std::uint32_t leaf, std::uint32_t subleaf) -> CpuidRegisters {
                            if (leaf == 0) return {last_leaf, 0, 0, 0};
                            if (leaf == 1) return {model, 0, basic, 0};
                            if (leaf == 7 && subleaf == 0) return {extended_leaves, extended, 0, 0};
                            if (leaf == 7 && subleaf == 1) return {extended_1, 0, 0, 0};
                            return {};
                          },
                          [this] {
                            if ((basic >> 27 & 1) == 0) FAIL("xgetbv would be illegal");
                            return saved;
                          }});
  }
};

constexpr std::uint32_t bits(std::initializer_list<int> set) {
  std::uint32_t value = 0;
  for (const int bit : set) value |= 1u << bit;
  return value;
}

constexpr std::uint32_t kAvxFmaOsxsave = bits({12, 27, 28});
constexpr std::uint32_t kAvx2 = bits({5});
constexpr std::uint32_t kAvx512OfServers = bits({5, 16, 17, 28, 30, 31});
constexpr std::uint64_t kYmmSaved = 0x7, kZmmSaved = 0xe7;

FakeProcessor haswell() {
  return {.model = 0x306f2, .basic = kAvxFmaOsxsave, .extended = kAvx2, .saved = kYmmSaved};
}

FakeProcessor skylake_server() {
  FakeProcessor processor = haswell();
  processor.model = 0x50654;
  processor.extended = kAvx512OfServers;
  processor.saved = kZmmSaved;
  return processor;
}

// Family 6, model 207, which OpenBLAS 0.3.21 doesn't know.
FakeProcessor emerald_rapids() {
  FakeProcessor processor = skylake_server();
  processor.model = 0xc06f2;
  processor.extended_leaves = 2;
  processor.extended_1 = bits({4, 5});
  return processor;
}

// OpenBLAS on a processor whose model number it takes for `own`.
class FakeLibrary {
 public:
  explicit FakeLibrary(std::string own, std::set<std::string> wrong = {})
      : own_(own), core_(std::move(own)), wrong_(std::move(wrong)) {}
  // What this build has no kernels of.
  FakeLibrary& lacks(std::set<std::string> names) {
    lacks_ = std::move(names);
    return *this;
  }

  BlasCore choose(VectorSet processor, const std::string& told = "") {
    return choose_blas_core({[this] { return core_; },
                             [this](const std::string& name) {
                               used_.push_back(name);
                               core_ = lacks_.contains(name) ? own_ : name;
                             },
                             [this] {
                               checked_.push_back(core_);
                               return !wrong_.contains(core_);
                             }},
                            processor, told);
  }
  const std::string& core() const { return core_; }
  const std::vector<std::string>& used() const { return used_; }
  const std::vector<std::string>& checked() const { return checked_; }

 private:
  std::string own_, core_;
  std::set<std::string> wrong_, lacks_;
  std::vector<std::string> used_, checked_;
};

}  // namespace

TEST_CASE("cpu_features: vectors are what CPUID says, whatever the model") {
  CHECK(haswell().vectors() == VectorSet::kAvx2);
  CHECK(skylake_server().vectors() == VectorSet::kAvx512);
  CHECK(emerald_rapids().vectors() == VectorSet::kAvx512Bf16);
  FakeProcessor unknown = emerald_rapids();
  unknown.model = 0xfff0fff0;
  CHECK(unknown.vectors() == VectorSet::kAvx512Bf16);
}

TEST_CASE("cpu_features: vectors whose registers the system doesn't save are not used") {
  FakeProcessor processor = emerald_rapids();
  processor.saved = kYmmSaved;
  CHECK(processor.vectors() == VectorSet::kAvx2);
  processor.saved = 0x3;
  CHECK(processor.vectors() == VectorSet::kOther);
  processor.basic &= ~bits({27});
  CHECK(processor.vectors() == VectorSet::kOther);
}

TEST_CASE("cpu_features: a set lacks an instruction") {
  for (const int bit : {16, 17, 28, 30, 31}) {  // Xeon Phi has AVX-512 without BW and VL
    FakeProcessor processor = emerald_rapids();
    processor.extended &= ~bits({bit});
    CHECK(processor.vectors() == VectorSet::kAvx2);
  }
  FakeProcessor processor = emerald_rapids();
  processor.extended_leaves = 0;  // leaf 7.1 then holds anything
  CHECK(processor.vectors() == VectorSet::kAvx512);
  processor = haswell();
  processor.basic &= ~bits({12});
  CHECK(processor.vectors() == VectorSet::kOther);
  processor = haswell();
  processor.last_leaf = 6;
  CHECK(processor.vectors() == VectorSet::kOther);
}

TEST_CASE("blas_core: a model that OpenBLAS doesn't know gets the kernels for what it can do") {
  FakeLibrary library("Prescott");
  const BlasCore core = library.choose(emerald_rapids().vectors());
  CHECK(core.name == "Cooperlake");
  CHECK(core.uses == VectorSet::kAvx512Bf16);
  CHECK_FALSE(core.is_below_processor());
  CHECK(core.wrong.empty());
  CHECK(library.checked() == std::vector<std::string>{"Cooperlake"});
  CHECK(FakeLibrary("Prescott").choose(VectorSet::kAvx512).name == "SkylakeX");
  CHECK(FakeLibrary("Nehalem").choose(VectorSet::kAvx2).name == "Haswell");
}

TEST_CASE("blas_core: what OpenBLAS chose stays if it uses all that the processor has") {
  for (const auto& [own, vectors] :
       {std::pair("Cooperlake", VectorSet::kAvx512Bf16),
        std::pair("SapphireRapids", VectorSet::kAvx512Bf16),
        std::pair("SkylakeX", VectorSet::kAvx512), std::pair("Haswell", VectorSet::kAvx2),
        std::pair("Zen", VectorSet::kAvx2), std::pair("neoversen1", VectorSet::kOther)}) {
    FakeLibrary library(own);
    CHECK(library.choose(vectors).name == own);
    CHECK(library.used().empty());
    CHECK(library.checked() == std::vector<std::string>{own});
  }
  // Without BF16 a SkylakeX is as wide; with it, Cooperlake's are the better kernels.
  CHECK(FakeLibrary("SkylakeX").choose(VectorSet::kAvx512Bf16).name == "Cooperlake");
}

TEST_CASE("blas_core: kernels that the processor can't run are never tried") {
  FakeLibrary library("Cooperlake");  // as if AVX-512 were switched off in the system
  CHECK(library.choose(VectorSet::kAvx2).name == "Haswell");
  CHECK(library.checked() == std::vector<std::string>{"Haswell"});
}

TEST_CASE("blas_core: after kernels that multiply wrong come the next lower ones") {
  FakeLibrary one("Prescott", {"Cooperlake"});
  BlasCore core = one.choose(VectorSet::kAvx512Bf16);
  CHECK(core.name == "SkylakeX");
  CHECK(core.wrong == std::vector<std::string>{"Cooperlake"});
  CHECK_FALSE(core.is_below_processor());  // as wide

  FakeLibrary two("Prescott", {"Cooperlake", "SkylakeX"});
  core = two.choose(VectorSet::kAvx512Bf16);
  CHECK(core.name == "Haswell");
  CHECK(core.is_below_processor());

  FakeLibrary own("Prescott", {"Cooperlake", "SkylakeX", "Haswell"});
  core = own.choose(VectorSet::kAvx512Bf16);
  CHECK(core.name == "Prescott");
  CHECK(core.uses == VectorSet::kOther);

  FakeLibrary none("Zen", {"Zen", "Haswell", "armv8"});  // AArch64's lowest comes last there
  CHECK_THROWS_WITH(none.choose(VectorSet::kAvx2), Catch::Contains("multiplies matrices wrong"));
  REQUIRE(none.checked().size() >= 2);
  CHECK(none.checked()[0] == "Zen");
  CHECK(none.checked()[1] == "Haswell");
}

TEST_CASE("blas_core: kernels that a build lacks are passed over") {
  FakeLibrary library("Prescott");
  const BlasCore core = library.lacks({"Cooperlake"}).choose(VectorSet::kAvx512Bf16);
  CHECK(core.name == "SkylakeX");
  CHECK(core.wrong.empty());
}

TEST_CASE("blas_core: what the user told OpenBLAS stays") {
  FakeLibrary library("Haswell");
  const BlasCore core = library.choose(VectorSet::kAvx512Bf16, "haswell");
  CHECK(core.name == "Haswell");
  CHECK(core.told == "haswell");
  CHECK(core.is_below_processor());
  CHECK(library.used().empty());
  // OpenBLAS has no such core and took another one.
  const BlasCore unknown = FakeLibrary("Prescott").choose(VectorSet::kAvx512Bf16, "Haswel");
  CHECK(unknown.name == "Cooperlake");
  CHECK(unknown.told.empty());
  CHECK_THROWS_AS(FakeLibrary("SkylakeX").choose(VectorSet::kAvx2, "SkylakeX"), UsageError);
  CHECK_THROWS_AS(FakeLibrary("Haswell", {"Haswell"}).choose(VectorSet::kAvx2, "Haswell"),
                  DeviceError);
}

TEST_CASE("blas_core: this processor's kernels multiply right") {
  const BlasCore& core = blas_core();
  CAPTURE(core.name);
  CHECK(blas_multiplies_right());
  CHECK(core.uses <= core.processor_has);
  if (std::getenv("OPENBLAS_CORETYPE") == nullptr) CHECK_FALSE(core.is_below_processor());
}

}  // namespace ooc::testing
