// Compiled for any x86-64, without sanitizers (CMakeLists.txt).
#include "bin/cli/required_vectors.h"

#include <unistd.h>

#include <cstring>

namespace ooc::cli {

void check_required_vectors(int argc, char** argv, char**) {
#if defined(__x86_64__) && defined(OOC_NEEDS_V3)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v3")) return;
  const char* const name = argc > 0 ? argv[0] : "ooc";
  constexpr char kText[] = ": error: this processor lacks AVX2, FMA or BMI2, which ooc needs\n";
  if (::write(STDERR_FILENO, name, std::strlen(name)) >= 0) {
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kText, sizeof(kText) - 1);
  }
  ::_exit(1);
#else
  static_cast<void>(argc);
  static_cast<void>(argv);
#endif
}

}  // namespace ooc::cli
