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

// False: stopped.
bool read_words(const TensorStore& degrees, const std::atomic<bool>* stop,
                std::vector<std::uint64_t>& words) {
  constexpr std::int64_t kAtOnce = 4;  // I/O chunks that are read, of about 1 MiB each
  const TensorLayout& layout = degrees.layout();
  OOC_CHECK(degrees.dtype() == DType::kI32 && layout.slice_stride(0) == kDegreeColumns);
  words.assign(static_cast<std::size_t>(SelfLoops::bytes_of(layout.rows)) / sizeof(std::uint64_t),
               0);
  const std::int64_t io_chunk_rows = degrees.io_chunk_blocks() * layout.block_rows;
  const std::int64_t io_chunks = ceil_div(layout.rows, io_chunk_rows);
  const std::int64_t row_bytes = kDegreeColumns * std::int64_t{sizeof(std::int32_t)};
  const std::int64_t io_chunk_bytes =
      round_up(std::min(io_chunk_rows, layout.rows) * row_bytes, std::int64_t{kIoAlignment});
  const std::int64_t at_once = std::min(kAtOnce, io_chunks);
  const HostBuffer buffer(static_cast<std::size_t>(at_once * io_chunk_bytes), "cpu");
  for (std::int64_t first = 0; first < io_chunks; first += at_once) {
    const std::int64_t end = std::min(first + at_once, io_chunks);
    const auto data = [&](std::int64_t io_chunk) {
      return buffer.data() + (io_chunk - first) * io_chunk_bytes;
    };
    if (stop != nullptr && *stop) return false;
    BlockWait wait;
    for (std::int64_t io_chunk = first; io_chunk < end; ++io_chunk) {
      degrees.read(io_chunk, 0, data(io_chunk), wait.completion());
    }
    wait.wait();
    for (std::int64_t io_chunk = first; io_chunk < end; ++io_chunk) {
      if (degrees.needs_decoding(io_chunk, 0))
        degrees.verify_and_decode(io_chunk, 0, data(io_chunk));
      const std::int64_t row = io_chunk * io_chunk_rows;
      add(reinterpret_cast<const std::int32_t*>(data(io_chunk)), row,
          std::min(io_chunk_rows, layout.rows - row), words);
    }
  }
  return true;
}

}  // namespace

bool SelfLoops::read(const std::atomic<bool>* stop) {
  if (degrees_ == nullptr || bits_.back() != nullptr) return true;
  if (!read_words(*degrees_, stop, words_)) return false;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    bits_[i] = devices_[i]->host_accessible() ? words_.data() : copy_to(*devices_[i]);
  }
  if (!buffers_.empty()) words_ = std::vector<std::uint64_t>();
  return true;
}

const std::uint64_t* SelfLoops::copy_to(Backend& device) {
  const std::size_t bytes = words_.size() * sizeof(std::uint64_t);
  const DeviceBuffer& buffer = *buffers_.emplace_back(device.allocate(bytes));
  Queue& queue = device.queue(QueueKind::kIn);
  queue.copy(buffer.data(), words_.data(), bytes);
  queue.wait(queue.record());
  return reinterpret_cast<const std::uint64_t*>(buffer.data());
}

}  // namespace ooc
