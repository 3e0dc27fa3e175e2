// How losses read the split of a vertex.
#pragma once

#include <cstdint>

#include "kernels/spec/operator.h"
#include "storage/base/errors.h"

namespace ooc::cpu {

// Of row `row` of the third input, [rows, 1] of bytes: 0 where it is in none.
inline std::uint8_t split_of(const OperatorCall& call, std::int64_t row) {
  constexpr std::uint8_t kLastSplit = 3;
  const MatrixView& splits = call.inputs[2];
  const std::uint8_t split = splits.data<std::uint8_t>(0)[row * splits.stride(0)];
  OOC_CHECK(split <= kLastSplit);
  return split;
}

}  // namespace ooc::cpu
