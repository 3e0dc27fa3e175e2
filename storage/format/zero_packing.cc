#include "storage/format/zero_packing.h"

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#include "storage/io/block_file.h"

namespace ooc {
namespace {

// Elements that are packed at once: a byte of the mask.
constexpr std::size_t kGroup = 8;
typedef std::int32_t Group __attribute__((vector_size(kGroup * sizeof(std::int32_t))));
constexpr std::size_t kGroupBytes = sizeof(Group);
// Of the bytes, what must be left out to be worth it; the first ones tell of the others.
constexpr std::size_t kWorthwhile = 8, kFirst = 16;
// How far ahead of its use memory is asked for: rows come from storage, or from other processors.
constexpr std::size_t kAhead = 2048;

// Once a cache line.
template <int write>
void prefetch(const std::byte* at, std::size_t group) {
  if (group % (64 / kGroupBytes) == 0) __builtin_prefetch(at + kAhead, write);
}

// By mask, for each place of a group, from where it comes: in a group whose last elements are the
// values, of the group; in the group, of one that begins with its values.
struct Moves {
  std::array<std::array<std::uint8_t, kGroup>, 256> pack{}, unpack{};
};

constexpr Moves make_moves() {
  Moves moves;
  for (std::size_t mask = 0; mask < 256; ++mask) {
    std::size_t packed = kGroup - static_cast<std::size_t>(std::popcount(mask)), value = 0;
    for (std::uint8_t place = 0; place < kGroup; ++place) {
      if ((mask >> place & 1) == 0) continue;
      moves.pack[mask][packed++] = place;
      moves.unpack[mask][place] = static_cast<std::uint8_t>(value++);
    }
  }
  return moves;
}
constexpr Moves kMoves = make_moves();

// Each place's element from where `moves` says.
Group moved(const Group& group, const std::array<std::uint8_t, kGroup>& moves) {
#ifdef __AVX2__
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(moves.data()));
  return reinterpret_cast<Group>(
      _mm256_permutevar8x32_epi32(reinterpret_cast<__m256i>(group), _mm256_cvtepu8_epi32(bytes)));
#else
  Group out{};
  for (std::size_t place = 0; place < kGroup; ++place) out[place] = group[moves[place]];
  return out;
#endif
}

Group load(const std::byte* from) {
  Group group;
  std::memcpy(&group, from, sizeof group);
  return group;
}

constexpr Group kBits = {1, 2, 4, 8, 16, 32, 64, 128};

std::uint8_t mask_of(Group group) {
#ifdef __AVX2__
  const __m256i zeros =
      _mm256_cmpeq_epi32(reinterpret_cast<__m256i>(group), _mm256_setzero_si256());
  return static_cast<std::uint8_t>(~_mm256_movemask_ps(_mm256_castsi256_ps(zeros)));
#else
  const Group bits = (group != 0) & kBits;
  std::int32_t mask = 0;
  for (std::size_t place = 0; place < kGroup; ++place) mask |= bits[place];
  return static_cast<std::uint8_t>(mask);
#endif
}

// Of a worker's own.
std::vector<std::uint8_t>& masks_of(std::size_t groups) {
  thread_local std::vector<std::uint8_t> masks;
  masks.resize(groups);
  return masks;
}

std::size_t bytes_of(std::uint8_t mask) {
  return static_cast<std::size_t>(std::popcount(mask)) * sizeof(float);
}

}  // namespace

std::size_t pack_zeros(std::span<std::byte> rows) {
  if (rows.size() % kGroupBytes != 0) return 0;
  const std::size_t groups = rows.size() / kGroupBytes;
  std::vector<std::uint8_t>& masks = masks_of(groups);
  std::size_t values = 0, seen = 0;
  const auto look = [&](std::size_t end) {
    for (; seen < end; ++seen) {
      prefetch<0>(rows.data() + seen * kGroupBytes, seen);
      masks[seen] = mask_of(load(rows.data() + seen * kGroupBytes));
      values += bytes_of(masks[seen]);
    }
    const std::size_t packed = values + seen, whole = seen * kGroupBytes;
    return packed < whole ? whole - packed : 0;  // bytes that are left out
  };
  if (look(groups / kFirst) < groups / kFirst * kGroupBytes / kWorthwhile) return 0;
  const std::size_t begin = look(groups) / kIoAlignment * kIoAlignment;
  if (begin == 0 || begin < rows.size() / kWorthwhile) return 0;
  // From the end on: no value goes to where one lies that hasn't been taken.
  std::byte* to = rows.data() + rows.size();
  for (std::size_t i = groups; i-- > 0;) {
    const Group group = load(rows.data() + i * kGroupBytes);
    const Group packed_group = moved(group, kMoves.pack[masks[i]]);
    std::memcpy(to - kGroupBytes, &packed_group, sizeof packed_group);
    to -= bytes_of(masks[i]);
  }
  std::memcpy(rows.data() + begin, masks.data(), groups);
  return begin;
}

bool unpack_zeros(std::span<std::byte> rows, std::size_t begin) {
  const std::size_t groups = rows.size() / kGroupBytes;
  std::vector<std::uint8_t>& masks = masks_of(groups);
  std::memcpy(masks.data(), rows.data() + begin, groups);
  std::size_t values = 0;
  for (const std::uint8_t mask : masks) values += bytes_of(mask);
  if (begin + groups + values > rows.size()) return false;
  const std::byte* from = rows.data() + rows.size() - values;
  const std::byte* const end = rows.data() + rows.size();
  for (std::size_t i = 0; i < groups; ++i) {
    prefetch<1>(rows.data() + i * kGroupBytes, i);
    prefetch<0>(from, i);
    Group group{};
    if (end - from >= static_cast<std::ptrdiff_t>(kGroupBytes)) {
      group = load(from);
    } else {
      std::memcpy(&group, from, static_cast<std::size_t>(end - from));
    }
    const Group kept = ((kBits & masks[i]) != 0) & moved(group, kMoves.unpack[masks[i]]);
    std::memcpy(rows.data() + i * kGroupBytes, &kept, sizeof kept);
    from += bytes_of(masks[i]);
  }
  return true;
}

}  // namespace ooc
