#include "sched/sampling/row_regions.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "storage/base/errors.h"

namespace ooc {
namespace {

constexpr std::int64_t kMostBuffer = 4 << 20;
constexpr std::size_t kReadBytes = 4 << 20;  // of a request

}  // namespace

std::int64_t RowRegions::buffer_bytes(std::int64_t bytes, std::int64_t batches) {
  const auto share = static_cast<std::uint64_t>(bytes / std::max<std::int64_t>(1, 2 * batches));
  return std::clamp(static_cast<std::int64_t>(std::bit_floor(share)), kLeastBuffer, kMostBuffer);
}

// Rows at once end in a new buffer of every batch at most, while the one before isn't written, and
// fill others between.
std::int64_t RowRegions::buffers(std::int64_t batches, std::int64_t bytes_at_once,
                                 std::int64_t buffer_bytes) {
  return 2 * batches + ceil_div(bytes_at_once, buffer_bytes);
}

RowRegions::RowRegions(BlockIo& io, std::span<const std::int64_t> rows, std::size_t record_bytes,
                       const Options& options)
    : io_(io),
      record_bytes_(record_bytes),
      rows_(rows.begin(), rows.end()),
      reserved_(rows.size()) {
  offsets_.push_back(0);
  for (std::size_t batch = 0; batch < rows.size(); ++batch) {
    const auto bytes = static_cast<std::uint64_t>(region_bytes(static_cast<std::int64_t>(batch)));
    offsets_.push_back(offsets_.back() + static_cast<std::int64_t>(io_aligned(bytes)));
  }
  if (bytes() > 0) open_file(rows, options);
}

void RowRegions::open_file(std::span<const std::int64_t> rows, const Options& options) {
  const auto batches = static_cast<std::int64_t>(rows.size());
  buffer_bytes_ = static_cast<std::size_t>(buffer_bytes(options.buffer_bytes, batches));
  shift_ = std::countr_zero(buffer_bytes_);
  std::size_t count = 0;
  for (std::int64_t batch = 0; batch < batches; ++batch) {
    first_buffer_.push_back(count);
    count += buffers_until(static_cast<std::size_t>(region_bytes(batch)));
  }
  buffers_ = std::vector<Buffer>(count);
  for (std::int64_t batch = 0; batch < batches; ++batch) {
    auto left = static_cast<std::size_t>(region_bytes(batch));
    for (std::size_t i = first_buffer_[static_cast<std::size_t>(batch)]; left > 0; ++i) {
      const std::size_t bytes = std::min(left, buffer_bytes_);
      buffers_[i].left = static_cast<std::uint32_t>(bytes);
      left -= bytes;
    }
  }
  const auto at_once = options.rows_at_once * static_cast<std::int64_t>(record_bytes_);
  const auto most =
      static_cast<std::size_t>(buffers(batches, at_once, static_cast<std::int64_t>(buffer_bytes_)));
  const std::size_t slots = std::min(count, most);
  memory_.emplace(slots * buffer_bytes_, "cold rows");
  for (std::size_t i = slots; i-- > 0;) free_.push_back(memory_->data() + i * buffer_bytes_);
  file_ = io_.create_temporary(options.directory, static_cast<std::uint64_t>(bytes()));
}

std::int64_t RowRegions::region_bytes(std::int64_t batch) const {
  return rows_[static_cast<std::size_t>(batch)] * static_cast<std::int64_t>(record_bytes_);
}

bool RowRegions::has_room(std::span<const std::uint32_t> rows) const {
  if (!in_file()) return true;
  std::size_t needed = 0;
  for (std::size_t batch = 0; batch < rows.size(); ++batch) {
    const std::size_t first = reserved_[batch] * record_bytes_;
    needed += buffers_until(first + rows[batch] * record_bytes_) - buffers_until(first);
  }
  return needed <= free_.size();
}

std::uint32_t RowRegions::reserve(std::int64_t batch, std::uint32_t rows) {
  const auto at = static_cast<std::size_t>(batch);
  const std::uint32_t index = reserved_[at];
  reserved_[at] += rows;
  OOC_CHECK(reserved_[at] <= rows_[at]);
  if (!in_file()) return index;
  const std::size_t first = first_buffer_[at] + buffers_until(index * record_bytes_);
  const std::size_t end = first_buffer_[at] + buffers_until(reserved_[at] * record_bytes_);
  for (std::size_t i = first; i < end; ++i) {
    buffers_[i].data = free_.back();
    free_.pop_back();
  }
  return index;
}

void RowRegions::write(std::int64_t batch, std::uint32_t index, const std::byte* record) {
  if (std::byte* const place = row(batch, index)) {
    std::memcpy(place, record, record_bytes_);
    return;
  }
  std::size_t offset = index * record_bytes_;
  for (std::size_t left = record_bytes_; left > 0;) {
    const std::size_t inside = offset & (buffer_bytes_ - 1);
    const std::size_t bytes = std::min(left, buffer_bytes_ - inside);
    const std::size_t buffer = first_buffer_[static_cast<std::size_t>(batch)] + (offset >> shift_);
    std::memcpy(buffers_[buffer].data + inside, record, bytes);
    record += bytes;
    offset += bytes;
    left -= bytes;
  }
}

void RowRegions::written(Driver& driver, std::int64_t batch, std::uint32_t index,
                         std::uint32_t rows) {
  if (!in_file()) return;
  const std::size_t end = (index + std::size_t{rows}) * record_bytes_;
  for (std::size_t offset = index * record_bytes_; offset < end;) {
    const std::size_t buffer = offset >> shift_;
    const std::size_t next = std::min(end, (buffer + 1) << shift_);
    const auto bytes = static_cast<std::uint32_t>(next - offset);
    Buffer& of = buffers_[first_buffer_[static_cast<std::size_t>(batch)] + buffer];
    if (of.left.fetch_sub(bytes, std::memory_order_acq_rel) == bytes) submit(driver, batch, buffer);
    offset = next;
  }
}

void RowRegions::submit(Driver& driver, std::int64_t batch, std::size_t buffer) {
  const auto at = static_cast<std::size_t>(batch);
  std::byte* const data = buffers_[first_buffer_[at] + buffer].data;
  const std::size_t offset = buffer << shift_;
  const std::size_t bytes =
      std::min(static_cast<std::size_t>(region_bytes(batch)) - offset, buffer_bytes_);
  bytes_written_ += static_cast<std::int64_t>(bytes);
  io_.submit({BlockRequest::Kind::kWrite, file_.get(),
              static_cast<std::uint64_t>(offsets_[at]) + offset, data, bytes,
              driver.expect([this, &driver, data] {
                free_.push_back(data);
                driver.wake();
              })});
}

void RowRegions::finish() {
  if (!in_file()) return;
  free_ = {};
  std::vector<Buffer>().swap(buffers_);
  memory_.reset();
}

void RowRegions::read(std::int64_t batch, std::byte* data, BlockWait& wait) const {
  OOC_CHECK(in_file());
  const auto begin = static_cast<std::uint64_t>(offsets_[static_cast<std::size_t>(batch)]);
  const auto size = static_cast<std::size_t>(region_bytes(batch));
  for (std::size_t offset = 0; offset < size; offset += kReadBytes) {
    io_.submit({BlockRequest::Kind::kRead, file_.get(), begin + offset, data + offset,
                std::min(kReadBytes, size - offset), wait.completion()});
  }
}

}  // namespace ooc
