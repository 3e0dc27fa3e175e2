#include "sched/sampling/row_assembly.h"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#ifdef __AVX__
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <vector>

#include "storage/base/errors.h"
#include "storage/base/half.h"

namespace ooc {
namespace {

constexpr std::int64_t kSliceAlignment = 64;
constexpr std::size_t kLine = 64;      // of a cache
constexpr std::int64_t kGroup = 16;    // records at a time: what they take stays in the first cache
constexpr std::int64_t kGrain = 2048;  // rows of a task

// A strip of a record on its way to a slice.
struct Target {
  std::size_t offset = 0;  // in a record
  std::size_t bytes = 0;   // there
  std::size_t columns = 0;
  DType from = DType::kF32, to = DType::kF32;
  std::byte* rows = nullptr;
  std::int64_t count = 0;
  std::size_t stride = 0;   // bytes between two rows
  std::size_t written = 0;  // bytes of a row, without padding
};

std::int64_t slice_bytes(const RowInput& input, std::int64_t rows, std::int64_t slice) {
  const auto row = input.store->layout().slice_stride(slice) *
                   static_cast<std::int64_t>(dtype_bytes(input.dtype));
  return round_up(rows * row, kSliceAlignment);
}

std::vector<Target> targets_of(const RowRecord& record, std::span<const RowOutput> outputs) {
  OOC_CHECK(outputs.size() == record.inputs().size());
  std::vector<Target> targets;
  for (const RowStrip& strip : record.strips()) {
    const RowInput& input = record.inputs()[strip.input];
    const RowOutput& output = outputs[strip.input];
    if (output.rows == 0) continue;
    const TensorLayout& layout = input.store->layout();
    const std::size_t element = dtype_bytes(input.dtype);
    const auto columns = static_cast<std::size_t>(layout.slice_cols(strip.slice));
    targets.push_back({strip.offset, strip.bytes, columns, input.store->dtype(), input.dtype,
                       output.place.slice(strip.slice, layout.slice_count()), output.rows,
                       static_cast<std::size_t>(layout.slice_stride(strip.slice)) * element,
                       columns * element});
  }
  return targets;
}

using Group = std::array<const std::byte*, kGroup>;

// Past the caches, which have better use than rows of which a batch has more than they hold: it
// takes two thirds of the time, as lines needn't be read first. `to`: a multiple of 32, as `bytes`.
#ifdef __AVX__
constexpr std::size_t kStreamed = 32;
void stream_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += kStreamed) {
    const __m256i data = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i), data);
  }
}
void end_of_stream() { _mm_sfence(); }
#else
constexpr std::size_t kStreamed = 1;
void stream_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}
void end_of_stream() {}
#endif

// Of rows of a full slice.
bool is_streamed(const Target& target) {
  return target.columns == kSliceWidth && target.written % kStreamed == 0 &&
         reinterpret_cast<std::uintptr_t>(target.rows) % kStreamed == 0;
}

template <std::size_t kBytes, bool kStream = false>
void copy_group(const Target& target, const Group& records, std::int64_t first,
                std::int64_t count) {
  std::byte* to = target.rows + static_cast<std::size_t>(first) * target.stride;
  for (std::int64_t i = 0; i < count; ++i, to += target.stride) {
    const std::byte* const from = records[static_cast<std::size_t>(i)] + target.offset;
    const std::size_t bytes = kBytes > 0 ? kBytes : target.bytes;
    if constexpr (kStream) {
      stream_bytes(to, from, bytes);
    } else {
      std::memcpy(to, from, bytes);
    }
  }
}

void widen_group(const Target& target, const Group& records, std::int64_t first,
                 std::int64_t count) {
  const bool streamed = is_streamed(target);
  alignas(kLine) std::array<std::byte, kSliceWidth * sizeof(double)> row;
  std::byte* to = target.rows + static_cast<std::size_t>(first) * target.stride;
  for (std::int64_t i = 0; i < count; ++i, to += target.stride) {
    widen(target.from, records[static_cast<std::size_t>(i)] + target.offset, target.to,
          streamed ? row.data() : to, target.columns);
    if (streamed) stream_bytes(to, row.data(), target.written);
  }
}

void write_group(const Target& target, const Group& records, std::int64_t first,
                 std::int64_t count) {
  if (target.from != target.to) {
    widen_group(target, records, first, count);
  } else if (target.bytes == 128 && is_streamed(target)) {
    copy_group<128, true>(target, records, first, count);
  } else if (is_streamed(target)) {
    copy_group<0, true>(target, records, first, count);
  } else if (target.bytes == 4) {
    copy_group<4>(target, records, first, count);
  } else if (target.bytes == 8) {
    copy_group<8>(target, records, first, count);
  } else {
    copy_group<0>(target, records, first, count);
  }
  if (target.written == target.stride) return;
  std::byte* to = target.rows + static_cast<std::size_t>(first) * target.stride + target.written;
  for (std::int64_t i = 0; i < count; ++i, to += target.stride) {
    std::memset(to, 0, target.stride - target.written);
  }
}

// Of the records of rows [first, end), a group: those lines of them come in meanwhile.
void find_group(const RowRecord& record, const RowPlaces& places, std::int64_t first,
                std::int64_t end, Group& records) {
  for (std::int64_t i = first; i < end; ++i) {
    const std::uint64_t place = places.fields.third(places.words[static_cast<std::size_t>(i)]);
    const std::byte* const begin = (place & 1) != 0 ? places.hot : places.cold;
    const std::byte* const at = begin + (place >> 1) * record.bytes();
    records[static_cast<std::size_t>(i - first)] = at;
    for (std::size_t line = 0; line < record.bytes(); line += kLine) __builtin_prefetch(at + line);
    __builtin_prefetch(at + record.bytes() - 1);
  }
}

}  // namespace

std::int64_t row_output_bytes(const RowInput& input, std::int64_t rows) {
  std::int64_t bytes = 0;
  for (std::int64_t slice = 0; slice < input.store->layout().slice_count(); ++slice) {
    bytes += slice_bytes(input, rows, slice);
  }
  return bytes;
}

RowOutput place_row_output(const RowInput& input, std::int64_t rows, std::byte* data) {
  const std::int64_t slices = input.store->layout().slice_count();
  const std::int64_t full = slice_bytes(input, rows, 0);
  return {rows, {data, slices > 2 ? full : 0, data + (slices - 1) * full}};
}

void assemble_rows(const RowRecord& record, const RowPlaces& places,
                   std::span<const RowOutput> outputs) {
  const std::vector<Target> targets = targets_of(record, outputs);
  std::int64_t rows = 0;
  for (const Target& target : targets) rows = std::max(rows, target.count);
  OOC_CHECK(rows <= static_cast<std::int64_t>(places.words.size()));
  const auto write_rows = [&](const tbb::blocked_range<std::int64_t>& range) {
    Group groups[2];
    std::int64_t first = range.begin(), end = std::min(first + kGroup, range.end());
    find_group(record, places, first, end, groups[0]);
    for (std::size_t half = 0; first < range.end(); half ^= 1) {
      const std::int64_t next = std::min(end + kGroup, range.end());
      find_group(record, places, end, next, groups[half ^ 1]);
      for (const Target& target : targets) {
        const std::int64_t count = std::min(end, target.count) - first;
        if (count > 0) write_group(target, groups[half], first, count);
      }
      first = end;
      end = next;
    }
    end_of_stream();
  };
  tbb::parallel_for(tbb::blocked_range<std::int64_t>(0, rows, kGrain), write_rows);
}

}  // namespace ooc
