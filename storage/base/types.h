// Ground types everything shares: ids, counts, scalar types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ooc {

// Vertex ids and counts of vertices and edges are signed 64-bit everywhere outside a tile.
using VertexId = std::int64_t;

// Scalar types of tensors. The values are written to disk: never renumber.
enum class DType : std::uint32_t {
  kF32 = 1,
  kF64 = 2,
  kI32 = 3,
  kI64 = 4,
  kU8 = 5,
  kF16 = 6,  // storage/base/half.h
  kBF16 = 7,
};

constexpr std::size_t dtype_bytes(DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kF64:
    case DType::kI64:
      return 8;
    case DType::kU8:
      return 1;
    case DType::kF16:
    case DType::kBF16:
      return 2;
  }
  return 0;
}

constexpr std::string_view dtype_name(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "fp32";
    case DType::kF64:
      return "fp64";
    case DType::kI32:
      return "int32";
    case DType::kI64:
      return "int64";
    case DType::kU8:
      return "uint8";
    case DType::kF16:
      return "fp16";
    case DType::kBF16:
      return "bf16";
  }
  return "?";
}

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kF32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::kF64;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::kI32;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::kI64;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::kU8;
};

// Which edges a propagation follows. kIn: a destination reads from the sources of its in-edges
// (forward). kOut: a source reads from the destinations of its out-edges (the gradients of src).
enum class Direction { kIn, kOut };

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
constexpr std::int64_t round_up(std::int64_t a, std::int64_t multiple) {
  return ceil_div(a, multiple) * multiple;
}

}  // namespace ooc
