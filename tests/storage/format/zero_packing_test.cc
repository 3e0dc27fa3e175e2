#include "storage/format/zero_packing.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "storage/io/block_file.h"
#include "tests/support/aligned_buffer.h"

namespace ooc {
namespace {

constexpr std::size_t kPage = kIoAlignment / sizeof(float);

// Elements that are zero with so much probability, by a seed.
std::vector<float> elements(std::size_t count, double zeros, unsigned seed) {
  std::minstd_rand random(seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<float> values(count);
  for (float& value : values) {
    value = uniform(random) < zeros ? 0 : static_cast<float>(uniform(random) - 0.5);
  }
  return values;
}

std::size_t values_in(const std::vector<float>& elements) {
  std::size_t count = 0;
  for (const float& element : elements) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &element, sizeof bits);
    if (bits != 0) ++count;
  }
  return count;
}

// Packs, forgets what isn't stored, unpacks. Returns where the packed rows began.
std::size_t round_trip(const std::vector<float>& elements) {
  test::AlignedBuffer buffer(elements.size() * sizeof(float));
  const std::span<std::byte> rows(buffer.data(), elements.size() * sizeof(float));
  std::memcpy(rows.data(), elements.data(), rows.size());
  const std::size_t begin = pack_zeros(rows);
  CHECK(begin % kIoAlignment == 0);
  if (begin > 0) {
    std::memset(rows.data(), 0xff, begin);
    CHECK(unpack_zeros(rows, begin));
  }
  CHECK(std::memcmp(rows.data(), elements.data(), rows.size()) == 0);
  return begin;
}

}  // namespace

TEST_CASE("zero_packing: rows come back bit by bit, in as few pages as they need") {
  for (const std::size_t count : {8 * kPage, 33 * kPage, 33 * kPage + 8, 256 * kPage}) {
    for (const double zeros : {0.2, 0.5, 0.75, 0.99, 1.0}) {
      INFO(count << " elements, zeros " << zeros);
      const std::vector<float> rows = elements(count, zeros, 1);
      const std::size_t packed = values_in(rows) * sizeof(float) + count / 8;
      CHECK(round_trip(rows) == (count * sizeof(float) - packed) / kIoAlignment * kIoAlignment);
    }
  }
}

TEST_CASE("zero_packing: dense rows stay as they are") {
  for (const double zeros : {0.0, 0.05, 0.12}) {
    INFO("zeros " << zeros);
    CHECK(round_trip(elements(64 * kPage, zeros, 2)) == 0);
  }
  std::vector<float> late(64 * kPage);  // zeros, but not in the first rows
  std::fill_n(late.begin(), 8 * kPage, 1.0f);
  CHECK(round_trip(late) == 0);
  // Less than a page to leave out, and what isn't whole groups.
  CHECK(round_trip(elements(kPage, 0.9, 3)) == 0);
  CHECK(round_trip(elements(64 * kPage + 4, 0.9, 3)) == 0);
  CHECK(pack_zeros({}) == 0);
}

TEST_CASE("zero_packing: values in a row at either end, and none elsewhere") {
  for (const bool at_end : {false, true}) {
    std::vector<float> rows(64 * kPage);
    // Not in the first rows: those would look dense.
    const std::size_t first = at_end ? rows.size() - 20 * kPage : 8 * kPage;
    for (std::size_t i = 0; i < 20 * kPage; ++i) rows[first + i] = static_cast<float>(i + 1);
    CHECK(round_trip(rows) > 0);
  }
}

TEST_CASE("zero_packing: all that is no +0 is kept, to the bit") {
  using Limits = std::numeric_limits<float>;
  std::vector<float> rows(16 * kPage);
  const float odd[] = {-0.0f,
                       Limits::denorm_min(),
                       -Limits::denorm_min(),
                       Limits::infinity(),
                       -Limits::infinity(),
                       Limits::quiet_NaN(),
                       -Limits::signaling_NaN(),
                       Limits::max()};
  for (std::size_t i = 0; i < std::size(odd); ++i) rows[i * 1001] = odd[i];
  CHECK(values_in(rows) == std::size(odd));
  CHECK(round_trip(rows) > 0);
}

TEST_CASE("zero_packing: what can't have been packed is not unpacked") {
  test::AlignedBuffer buffer(16 * kIoAlignment);
  std::memset(buffer.data(), 0, buffer.size());
  const std::size_t begin = pack_zeros({buffer.data(), buffer.size()});
  CHECK(begin == 15 * kIoAlignment);
  std::memset(buffer.data() + begin, 0xff, kIoAlignment);  // a mask that knows no zeros
  CHECK(!unpack_zeros({buffer.data(), buffer.size()}, begin));
}

}  // namespace ooc
