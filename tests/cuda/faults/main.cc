#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "tests/cuda/faults/faults.h"

// The emulation aborts, which CTest would take for a failure of the test.
int main(int argc, char** argv) {
  std::signal(SIGABRT, [](int) { std::_Exit(1); });
  try {
    ooc::test::make_fault(argc > 1 ? std::atoi(argv[1]) : 0, argc > 2);
  } catch (const std::exception& error) {
    std::printf("error: %s\n", error.what());
    return 1;
  }
  return 0;
}
