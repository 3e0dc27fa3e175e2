#include "storage/import/rows/row_placer.h"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "storage/base/aligned_vector.h"
#include "storage/base/errors.h"

namespace ooc {
namespace {

constexpr std::size_t kMostBufferBytes = 4 << 20;

}  // namespace

// Rows on their way to their places, in a file of buckets. A record is the row's place within its
// bucket and the row.
class RowBuckets {
 public:
  RowBuckets(FileSystem& files, const RowPlacer::Options& options)
      : files_(files),
        path_(options.scratch),
        rows_(options.rows),
        row_bytes_(options.row_bytes),
        record_bytes_(row_bytes_ + sizeof(std::uint32_t)),
        file_(files.create(path_)) {
    const auto half = static_cast<std::size_t>(options.memory_bytes / 2);
    bucket_rows_ = static_cast<std::int64_t>(std::max<std::size_t>(1, half / record_bytes_));
    buckets_.resize(static_cast<std::size_t>((rows_ + bucket_rows_ - 1) / bucket_rows_));
    buffer_bytes_ = std::max<std::size_t>(
        1, std::min(half / std::max<std::size_t>(1, buckets_.size()), kMostBufferBytes));
  }
  RowBuckets(const RowBuckets&) = delete;
  RowBuckets& operator=(const RowBuckets&) = delete;
  ~RowBuckets() {
    file_.reset();
    try {
      files_.remove_all(path_);
    } catch (const Error&) {  // scratch: whoever owns its directory removes that, too
    }
  }

  void add(std::int64_t place, const std::byte* row) {
    const std::int64_t index = place / bucket_rows_;
    Bucket& bucket = buckets_[static_cast<std::size_t>(index)];
    const auto within = static_cast<std::uint32_t>(place % bucket_rows_);
    const auto* const head = reinterpret_cast<const std::byte*>(&within);
    bucket.buffer.insert(bucket.buffer.end(), head, head + sizeof(within));
    bucket.buffer.insert(bucket.buffer.end(), row, row + row_bytes_);
    if (bucket.buffer.size() + record_bytes_ > buffer_bytes_) flush(index);
  }

  // Calls take(rows, first row, count) with all rows in order of their places.
  template <class Take>
  void for_each(Take&& take) {
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      flush(static_cast<std::int64_t>(i));
      buckets_[i].buffer = {};
    }
    file_->close();
    const auto file = files_.open(path_);
    const std::size_t at_once = std::max<std::size_t>(1, kMostBufferBytes / record_bytes_);
    AlignedVector<std::byte> records(at_once * record_bytes_);
    AlignedVector<std::byte> placed;
    for (std::int64_t begin = 0; begin < rows_; begin += bucket_rows_) {
      const std::int64_t count = std::min(bucket_rows_, rows_ - begin);
      placed.resize(static_cast<std::size_t>(count) * row_bytes_);
      const std::uint64_t end = static_cast<std::uint64_t>(begin + count) * record_bytes_;
      for (std::uint64_t at = static_cast<std::uint64_t>(begin) * record_bytes_; at < end;) {
        const auto part =
            static_cast<std::size_t>(std::min<std::uint64_t>(records.size(), end - at));
        read_exact(*file, at, std::span(records).first(part));
        place(std::span<const std::byte>(records).first(part), placed);
        at += part;
      }
      take(placed, begin, count);
    }
  }

 private:
  struct Bucket {
    AlignedVector<std::byte> buffer;
    std::uint64_t written = 0;
  };

  void flush(std::int64_t index) {
    Bucket& bucket = buckets_[static_cast<std::size_t>(index)];
    if (bucket.buffer.empty()) return;
    const std::uint64_t begin = static_cast<std::uint64_t>(index * bucket_rows_) * record_bytes_;
    file_->write_at(begin + bucket.written, bucket.buffer);
    bucket.written += bucket.buffer.size();
    bucket.buffer.clear();
  }

  void place(std::span<const std::byte> records, std::span<std::byte> placed) const {
    tbb::parallel_for(std::size_t{0}, records.size() / record_bytes_, [&](std::size_t i) {
      const std::byte* const record = records.data() + i * record_bytes_;
      std::uint32_t within = 0;
      std::memcpy(&within, record, sizeof(within));
      std::memcpy(placed.data() + within * row_bytes_, record + sizeof(within), row_bytes_);
    });
  }

  FileSystem& files_;
  std::string path_;
  std::int64_t rows_;
  std::size_t row_bytes_;
  std::size_t record_bytes_;
  std::unique_ptr<WritableFile> file_;
  std::int64_t bucket_rows_ = 0;
  std::size_t buffer_bytes_ = 0;
  std::vector<Bucket> buckets_;
};

RowPlacer::RowPlacer(FileSystem& files, VertexTensorWriter& tensor,
                     std::span<const VertexIndex> new_ids, const Options& options)
    : tensor_(tensor), new_ids_(new_ids), row_bytes_(options.row_bytes) {
  if (!new_ids.empty()) buckets_ = std::make_unique<RowBuckets>(files, options);
}

RowPlacer::~RowPlacer() = default;

void RowPlacer::add(std::span<const std::byte> rows) {
  const auto count = static_cast<std::int64_t>(rows.size() / row_bytes_);
  if (!buckets_) {
    tensor_.append_rows(rows.data(), count);
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    buckets_->add(new_ids_[static_cast<std::size_t>(next_row_ + i)],
                  rows.data() + static_cast<std::size_t>(i) * row_bytes_);
  }
  next_row_ += count;
}

void RowPlacer::finish(std::string_view phase, const Control& control) {
  if (!buckets_) return;
  buckets_->for_each([&](std::span<const std::byte> rows, std::int64_t first, std::int64_t count) {
    tensor_.append_rows(rows.data(), count);
    control.step(phase, static_cast<double>(first + count), static_cast<double>(new_ids_.size()));
  });
  buckets_.reset();
}

}  // namespace ooc
