#include "sched/run/self_loops.h"

#include <algorithm>
#include <utility>

#include "kernels/device/host_buffer.h"
#include "storage/base/errors.h"
#include "storage/dataset/dataset.h"

namespace ooc {
namespace {

// Of `count` vertices from `first` on.
void add(const std::int32_t* degrees, std::int64_t first, std::int64_t count,
         std::vector<std::uint64_t>& words) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t vertex = first + i;
    const std::uint64_t has = degrees[i * kDegreeColumns + kSelfLoops] > 0 ? 1 : 0;
    words[static_cast<std::size_t>(vertex / 64)] |= has << (vertex % 64);
  }
}

}  // namespace

bool SelfLoops::read(const TensorStore& degrees, const std::atomic<bool>* stop) {
  constexpr std::int64_t kAtOnce = 4;  // units that are read, of about 1 MiB each
  const TensorLayout& layout = degrees.layout();
  OOC_CHECK(degrees.dtype() == DType::kI32 && layout.slice_stride(0) == kDegreeColumns);
  std::vector<std::uint64_t> words(static_cast<std::size_t>(bytes_of(layout.rows)) /
                                   sizeof(std::uint64_t));
  const std::int64_t unit_rows = degrees.unit_blocks() * layout.block_rows;
  const std::int64_t units = ceil_div(layout.rows, unit_rows);
  const std::int64_t row_bytes = kDegreeColumns * std::int64_t{sizeof(std::int32_t)};
  const std::int64_t unit_bytes =
      round_up(std::min(unit_rows, layout.rows) * row_bytes, std::int64_t{kIoAlignment});
  const std::int64_t at_once = std::min(kAtOnce, units);
  const auto buffer = make_host_buffer(static_cast<std::size_t>(at_once * unit_bytes), "cpu");
  for (std::int64_t first = 0; first < units; first += at_once) {
    const std::int64_t end = std::min(first + at_once, units);
    const auto data = [&](std::int64_t unit) {
      return buffer->data() + (unit - first) * unit_bytes;
    };
    if (stop != nullptr && *stop) return false;
    BlockWait wait;
    for (std::int64_t unit = first; unit < end; ++unit) {
      degrees.read(unit, 0, data(unit), wait.completion());
    }
    wait.wait();
    for (std::int64_t unit = first; unit < end; ++unit) {
      if (degrees.needs_settling(unit, 0)) degrees.settle(unit, 0, data(unit));
      const std::int64_t row = unit * unit_rows;
      add(reinterpret_cast<const std::int32_t*>(data(unit)), row,
          std::min(unit_rows, layout.rows - row), words);
    }
  }
  words_ = std::move(words);
  return true;
}

}  // namespace ooc
