#include "storage/base/half.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace ooc;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A 16-bit format by its definition, in double: every value of it, and the nearest one by search.
struct Format {
  DType dtype;
  int mantissa_bits;
  int bias;

  int exponent_bits() const { return 15 - mantissa_bits; }
  std::uint16_t infinity() const {
    return static_cast<std::uint16_t>(((1 << exponent_bits()) - 1) << mantissa_bits);
  }
  // The value of non-negative bits; those of infinity go on as a finite value would.
  double value(int bits) const {
    const int exponent = bits >> mantissa_bits;
    const int mantissa = bits & ((1 << mantissa_bits) - 1);
    const double scale = std::ldexp(1.0, -mantissa_bits);
    if (exponent == 0) return std::ldexp(mantissa * scale, 1 - bias);
    return std::ldexp(1 + mantissa * scale, exponent - bias);
  }
  // Round to nearest, ties to even, of a non-negative value that is no NaN.
  std::uint16_t nearest(double x) const {
    int low = 0, high = infinity();
    if (x >= value(high)) return infinity();
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (value(middle) <= x ? low : high) = middle;
    }
    const double below = x - value(low), above = value(high) - x;
    const bool up = above < below || (above == below && low % 2 == 1);
    return static_cast<std::uint16_t>(up ? high : low);
  }
};

const Format kFormats[] = {{DType::kF16, 10, 15}, {DType::kBF16, 7, 127}};

std::vector<float> widened(DType dtype, const std::vector<std::uint16_t>& bits) {
  std::vector<float> values(bits.size());
  widen(dtype, bits.data(), DType::kF32, values.data(), bits.size());
  return values;
}

std::vector<std::uint16_t> narrowed(DType dtype, const std::vector<float>& values) {
  std::vector<std::uint16_t> bits(values.size());
  narrow(values.data(), dtype, bits.data(), values.size());
  return bits;
}

std::vector<std::uint16_t> all_bits() {
  std::vector<std::uint16_t> bits(65536);
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint16_t>(i);
  return bits;
}

void check_narrowing(const Format& format, std::vector<float> values) {
  for (std::size_t i = 0, count = values.size(); i < count; ++i) values.push_back(-values[i]);
  const std::vector<std::uint16_t> bits = narrowed(format.dtype, values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const int sign = std::signbit(values[i]) ? 0x8000 : 0;
    const int expected = sign | format.nearest(std::abs(static_cast<double>(values[i])));
    if (bits[i] != expected) {
      FAIL(dtype_name(format.dtype)
           << " of " << values[i] << " is " << bits[i] << ", not " << expected);
    }
  }
}

}  // namespace

TEST_CASE("half: all 65,536 values widen to what their bits mean, and come back") {
  for (const Format& format : kFormats) {
    const std::vector<std::uint16_t> bits = all_bits();
    const std::vector<float> values = widened(format.dtype, bits);
    std::vector<double> doubles(bits.size());
    widen(format.dtype, bits.data(), DType::kF64, doubles.data(), bits.size());
    const std::vector<std::uint16_t> back = narrowed(format.dtype, values);
    for (std::size_t i = 0; i < bits.size(); ++i) {
      const int magnitude = bits[i] & 0x7fff;
      INFO(dtype_name(format.dtype) << " bits " << i);
      if (magnitude > format.infinity()) {
        if (!std::isnan(values[i]) || !std::isnan(doubles[i])) FAIL("NaN is lost");
        if ((back[i] & 0x7fff) <= format.infinity()) FAIL("NaN is lost on the way back");
        continue;
      }
      const double expected =
          magnitude == format.infinity() ? double{kInfinity} : format.value(magnitude);
      if (static_cast<double>(values[i]) != (bits[i] < 0x8000 ? expected : -expected) ||
          std::signbit(values[i]) != (bits[i] >= 0x8000) ||
          doubles[i] != static_cast<double>(values[i]) || back[i] != bits[i]) {
        FAIL("got " << values[i] << " and bits " << back[i]);
      }
    }
  }
}

TEST_CASE("half: between any two neighbours values round to the nearest, ties to even") {
  for (const Format& format : kFormats) {
    std::vector<float> values;
    for (int low = 0; low < format.infinity(); ++low) {
      const auto middle =
          static_cast<float>((format.value(low) + format.value(low + 1)) / 2);  // exact
      values.push_back(middle);
      values.push_back(std::nextafter(middle, 0.0f));
      values.push_back(std::nextafter(middle, kInfinity));
    }
    check_narrowing(format, values);
  }
}

TEST_CASE("half: floats of any bits round to the nearest") {
  std::mt19937 random(5);
  for (const Format& format : kFormats) {
    std::vector<float> values{0.0f, kInfinity, std::numeric_limits<float>::max(),
                              std::numeric_limits<float>::denorm_min()};
    while (values.size() < 100003) {
      const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
      if (!std::isnan(value)) values.push_back(value);
    }
    check_narrowing(format, values);
  }
}

TEST_CASE("half: the first finite value that becomes infinite is reported, whatever its place") {
  const std::pair<DType, float> limits[] = {{DType::kF16, 65520.0f}, {DType::kBF16, 0x1.ffp127f}};
  for (const auto& [dtype, limit] : limits) {
    for (const std::size_t at : {0u, 7u, 8u, 1023u, 1024u, 3000u}) {
      std::vector<float> values(3001, std::nextafter(limit, 0.0f));  // the largest that fits
      values[1] = kInfinity;
      values[2] = std::numeric_limits<float>::quiet_NaN();
      std::vector<std::uint16_t> bits(values.size());
      CHECK(narrow(values.data(), dtype, bits.data(), values.size()) == std::nullopt);
      values[at] = -limit;
      values[3000] = limit;
      CHECK(narrow(values.data(), dtype, bits.data(), values.size()) == at);
    }
  }
}

TEST_CASE("half: one value at a time is what arrays are, NaN payloads too") {
  const std::vector<std::uint16_t> bits = all_bits();
  const std::vector<float> values = widened(DType::kF16, bits);
  for (std::size_t i = 0; i < bits.size(); ++i) {
    const auto one = std::bit_cast<std::uint32_t>(to_float(Half{bits[i]}));
    if (one != std::bit_cast<std::uint32_t>(values[i])) FAIL("bits " << i);
  }
}
