// A target for libFuzzer: OOC_FUZZ_TARGET names its function.
#include <cstdint>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return ooc::fuzz::OOC_FUZZ_TARGET(std::as_bytes(std::span(data, size)));
}
