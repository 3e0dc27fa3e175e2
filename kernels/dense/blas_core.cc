#include "kernels/dense/blas_core.h"

#include <cblas.h>
#include <strings.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "storage/base/errors.h"

// OpenBLAS's own: forgets its choice of a core, and makes it anew from OPENBLAS_CORETYPE or the
// processor's model number.
extern "C" void gotoblas_dynamic_quit();
extern "C" void gotoblas_dynamic_init();

namespace ooc {
namespace {

constexpr const char* kVariable = "OPENBLAS_CORETYPE";

struct KnownCore {
  const char* name;
  VectorSet uses;
};
// Widest first. Zen is Haswell's kernels for AMD.
constexpr std::array kCores{
    KnownCore{"SapphireRapids", VectorSet::kAvx512Bf16},
    KnownCore{"Cooperlake", VectorSet::kAvx512Bf16}, KnownCore{"SkylakeX", VectorSet::kAvx512},
    KnownCore{"Haswell", VectorSet::kAvx2}, KnownCore{"Zen", VectorSet::kAvx2}};
// Not among those that are tried: they are left to OpenBLAS, whose Debian 12 has no SapphireRapids.
constexpr std::array<std::string_view, 2> kOnlyIfOwn{"Zen", "SapphireRapids"};
#if defined(__aarch64__)
constexpr const char* kLowest = "armv8";
#else
constexpr const char* kLowest = nullptr;
#endif

bool same_name(const std::string& a, const std::string& b) {
  return strcasecmp(a.c_str(), b.c_str()) == 0;
}

VectorSet vectors_of(const std::string& core) {
  const auto known = std::find_if(kCores.begin(), kCores.end(), [&](const KnownCore& each) {
    return same_name(each.name, core);
  });
  return known == kCores.end() ? VectorSet::kOther : known->uses;
}

// Cores to try, best first.
std::vector<std::string> candidates(const std::string& own, VectorSet processor) {
  std::vector<std::string> names;
  const VectorSet own_vectors = vectors_of(own);
  if (own_vectors == processor) names.push_back(own);
  for (const KnownCore& core : kCores) {
    const bool left =
        std::find(kOnlyIfOwn.begin(), kOnlyIfOwn.end(), core.name) != kOnlyIfOwn.end();
    if (core.uses <= processor && !left && core.name != own) names.emplace_back(core.name);
  }
  if (own_vectors < processor) names.push_back(own);
  if (kLowest != nullptr && !same_name(own, kLowest)) names.emplace_back(kLowest);
  return names;
}

[[noreturn]] void throw_none_right(const std::vector<std::string>& wrong,
                                   const std::string& remedy) {
  std::string names;
  for (const std::string& name : wrong) names += (names.empty() ? "" : ", ") + name;
  throw DeviceError("OpenBLAS multiplies matrices wrong on this processor", "kernels " + names,
                    remedy);
}

BlasCore told_core(const BlasLibrary& library, VectorSet processor, const std::string& told) {
  BlasCore core{library.core(), vectors_of(library.core()), processor, told, {}};
  const std::string where = std::string(kVariable) + "=" + told;
  if (core.uses > processor) {
    throw UsageError("this processor has no " + std::string(name_of(core.uses)), where,
                     "unset " + std::string(kVariable));
  }
  if (!library.multiplies_right()) {
    throw_none_right({core.name}, "unset " + std::string(kVariable) + ", which chose them");
  }
  return core;
}

// Serves while OpenBLAS chooses.
class EnvironmentVariable {
 public:
  EnvironmentVariable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  EnvironmentVariable(const EnvironmentVariable&) = delete;
  EnvironmentVariable& operator=(const EnvironmentVariable&) = delete;
  ~EnvironmentVariable() {
    if (before_) {
      setenv(name_, before_->c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

void use_core(const std::string& name) {
  const EnvironmentVariable told(kVariable, name);
  gotoblas_dynamic_quit();
  gotoblas_dynamic_init();
}

}  // namespace

bool BlasCore::is_below_processor() const {
  return uses < std::min(processor_has, VectorSet::kAvx512);
}

std::string description_of(const BlasCore& core) {
  std::string text = "OpenBLAS's " + core.name + " kernels";
  if (core.uses != VectorSet::kOther) text += " (" + std::string(name_of(core.uses)) + ")";
  return text;
}

BlasCore choose_blas_core(const BlasLibrary& library, VectorSet processor,
                          const std::string& told) {
  if (same_name(library.core(), told)) return told_core(library, processor, told);
  BlasCore chosen{"", VectorSet::kOther, processor, "", {}};
  for (const std::string& name : candidates(library.core(), processor)) {
    if (!same_name(library.core(), name)) library.use(name);
    if (!same_name(library.core(), name)) continue;  // this build has none of this name
    if (library.multiplies_right()) {
      chosen.name = library.core();
      chosen.uses = vectors_of(chosen.name);
      return chosen;
    }
    chosen.wrong.push_back(name);
  }
  throw_none_right(chosen.wrong, "update OpenBLAS (Debian: libopenblas-serial-dev) and build anew");
}

const BlasCore& blas_core() {
  static const BlasCore core = [] {
    const char* told = std::getenv(kVariable);
    return choose_blas_core({openblas_get_corename, use_core, blas_multiplies_right},
                            this_vector_set(), told == nullptr ? "" : told);
  }();
  return core;
}

}  // namespace ooc
