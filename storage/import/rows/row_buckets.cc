#include "storage/import/rows/row_buckets.h"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <cstring>

#include "storage/base/errors.h"

namespace ooc {
namespace {

constexpr std::size_t kMostBufferBytes = 4 << 20;

}  // namespace

RowBuckets::RowBuckets(FileSystem& files, const Options& options)
    : files_(files),
      path_(options.scratch),
      rows_(options.rows),
      row_bytes_(options.row_bytes),
      record_bytes_(row_bytes_ + sizeof(std::uint32_t)),
      writer_(files.create(path_)) {
  const auto half = static_cast<std::size_t>(options.memory_bytes / 2);
  read_bytes_ = std::min(half, kMostBufferBytes);
  bucket_rows_ = static_cast<std::int64_t>(std::max<std::size_t>(1, half / record_bytes_));
  buckets_.resize(static_cast<std::size_t>((rows_ + bucket_rows_ - 1) / bucket_rows_));
  buffer_bytes_ = std::max<std::size_t>(
      1, std::min(half / std::max<std::size_t>(1, buckets_.size()), kMostBufferBytes));
}

RowBuckets::~RowBuckets() {
  writer_.reset();
  reader_.reset();
  try {
    files_.remove_all(path_);
  } catch (const Error&) {  // scratch: whoever owns its directory removes that, too
  }
}

void RowBuckets::add(std::int64_t place, const std::byte* row) {
  const std::int64_t index = place / bucket_rows_;
  Bucket& bucket = buckets_[static_cast<std::size_t>(index)];
  const auto within = static_cast<std::uint32_t>(place % bucket_rows_);
  const auto* const head = reinterpret_cast<const std::byte*>(&within);
  bucket.buffer.reserve(std::max(buffer_bytes_, record_bytes_));
  bucket.buffer.insert(bucket.buffer.end(), head, head + sizeof(within));
  bucket.buffer.insert(bucket.buffer.end(), row, row + row_bytes_);
  if (bucket.buffer.size() + record_bytes_ > buffer_bytes_) flush(index);
}

void RowBuckets::finish() {
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    flush(static_cast<std::int64_t>(i));
    buckets_[i].buffer = {};
  }
  writer_->close();
  reader_ = files_.open(path_);
  records_.resize(std::max<std::size_t>(1, read_bytes_ / record_bytes_) * record_bytes_);
}

std::span<const std::byte> RowBuckets::next() {
  const std::int64_t begin = next_place_;
  const std::int64_t count = std::min(bucket_rows_, rows_ - begin);
  if (count == 0) return {};
  placed_.resize(static_cast<std::size_t>(count) * row_bytes_);
  const std::uint64_t end = static_cast<std::uint64_t>(begin + count) * record_bytes_;
  for (std::uint64_t at = static_cast<std::uint64_t>(begin) * record_bytes_; at < end;) {
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(records_.size(), end - at));
    read_exact(*reader_, at, std::span(records_).first(part));
    put(std::span<const std::byte>(records_).first(part));
    at += part;
  }
  next_place_ += count;
  return placed_;
}

void RowBuckets::flush(std::int64_t index) {
  Bucket& bucket = buckets_[static_cast<std::size_t>(index)];
  if (bucket.buffer.empty()) return;
  const std::uint64_t begin = static_cast<std::uint64_t>(index * bucket_rows_) * record_bytes_;
  writer_->write_at(begin + bucket.written, bucket.buffer);
  bucket.written += bucket.buffer.size();
  bucket.buffer.clear();
  if (record_bytes_ > buffer_bytes_) bucket.buffer = {};  // all of them would not fit
}

void RowBuckets::put(std::span<const std::byte> records) {
  tbb::parallel_for(std::size_t{0}, records.size() / record_bytes_, [&](std::size_t i) {
    const std::byte* const record = records.data() + i * record_bytes_;
    std::uint32_t within = 0;
    std::memcpy(&within, record, sizeof(within));
    OOC_CHECK((within + std::size_t{1}) * row_bytes_ <= placed_.size());
    std::memcpy(placed_.data() + within * row_bytes_, record + sizeof(within), row_bytes_);
  });
}

}  // namespace ooc
