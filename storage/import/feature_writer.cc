#include "storage/import/feature_writer.h"

#include <tbb/parallel_for.h>
#include <tbb/parallel_pipeline.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "storage/errors.h"

namespace ooc {
namespace {

constexpr std::int64_t kLeastBatchBytes = 1 << 20;
constexpr std::int64_t kMostBatchBytes = 32 << 20;
constexpr std::size_t kTokens = 3;  // one read, one worked on, one written

struct Batch {
  std::vector<float> values;
  std::int64_t rows = 0;
};

// Calls take(rows, first row, count) with the transformed rows, in order, one batch at a time.
template <class Take>
void for_each_batch(const FeatureRows& rows, std::int64_t memory_bytes, std::string_view phase,
                    const Control& control, Take&& take) {
  const std::int64_t row_bytes = rows.cols * static_cast<std::int64_t>(sizeof(float));
  // Each token holds a batch, and what writes it another.
  const std::int64_t batch_bytes = std::clamp(memory_bytes / static_cast<std::int64_t>(2 * kTokens),
                                              kLeastBatchBytes, kMostBatchBytes);
  const std::int64_t batch_rows = std::max<std::int64_t>(1, batch_bytes / row_bytes);
  std::int64_t done = 0;
  const auto next = [&](tbb::flow_control& flow) {
    auto batch = std::make_shared<Batch>();
    batch->values.resize(static_cast<std::size_t>(batch_rows * rows.cols));
    batch->rows = rows.next(batch->values);
    batch->values.resize(static_cast<std::size_t>(batch->rows * rows.cols));
    if (batch->rows == 0) flow.stop();
    return batch;
  };
  const auto transform = [&](std::shared_ptr<Batch> batch) {
    if (rows.transform) rows.transform(batch->values);
    return batch;
  };
  const auto hand_on = [&](const std::shared_ptr<Batch>& batch) {
    take(std::as_const(batch->values), done, batch->rows);
    done += batch->rows;
    control.step(phase, static_cast<double>(done), static_cast<double>(rows.vertices));
  };
  using Token = std::shared_ptr<Batch>;
  tbb::parallel_pipeline(
      kTokens, tbb::make_filter<void, Token>(tbb::filter_mode::serial_in_order, next) &
                   tbb::make_filter<Token, Token>(tbb::filter_mode::parallel, transform) &
                   tbb::make_filter<Token, void>(tbb::filter_mode::serial_in_order, hand_on));
  OOC_CHECK(done == rows.vertices);
}

// Rows on their way to their places, in a file of buckets. A record is the row's place within its
// bucket and the row.
class RowBuckets {
 public:
  RowBuckets(FileSystem& files, std::string path, std::int64_t rows, std::int64_t cols,
             std::int64_t memory_bytes)
      : files_(files),
        path_(std::move(path)),
        rows_(rows),
        row_bytes_(static_cast<std::size_t>(cols) * sizeof(float)),
        record_bytes_(row_bytes_ + sizeof(std::uint32_t)),
        file_(files.create(path_)) {
    const auto half = static_cast<std::uint64_t>(memory_bytes / 2);
    bucket_rows_ = static_cast<std::int64_t>(std::max<std::uint64_t>(1, half / record_bytes_));
    buckets_.resize(static_cast<std::size_t>((rows + bucket_rows_ - 1) / bucket_rows_));
    buffer_bytes_ = std::max(record_bytes_, static_cast<std::size_t>(half / buckets_.size()) /
                                                record_bytes_ * record_bytes_);
    buffer_bytes_ =
        std::min(buffer_bytes_, kMostBufferBytes / record_bytes_ * record_bytes_ + record_bytes_);
  }
  RowBuckets(const RowBuckets&) = delete;
  RowBuckets& operator=(const RowBuckets&) = delete;

  void add(std::int64_t place, const float* row) {
    const std::int64_t index = place / bucket_rows_;
    Bucket& bucket = buckets_[static_cast<std::size_t>(index)];
    const auto within = static_cast<std::uint32_t>(place % bucket_rows_);
    const auto* const head = reinterpret_cast<const std::byte*>(&within);
    const auto* const body = reinterpret_cast<const std::byte*>(row);
    bucket.buffer.insert(bucket.buffer.end(), head, head + sizeof(within));
    bucket.buffer.insert(bucket.buffer.end(), body, body + row_bytes_);
    if (bucket.buffer.size() >= buffer_bytes_) flush(index);
  }

  // Calls take(rows, count) with the rows at places [0, rows), in order.
  template <class Take>
  void for_each(Take&& take) {
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      flush(static_cast<std::int64_t>(i));
      buckets_[i].buffer = {};
    }
    file_->close();
    const auto file = files_.open(path_);
    std::vector<std::byte> records(
        std::max(record_bytes_, kMostBufferBytes / record_bytes_ * record_bytes_));
    std::vector<std::byte> placed;
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
  static constexpr std::size_t kMostBufferBytes = 4 << 20;

  struct Bucket {
    std::vector<std::byte> buffer;
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

}  // namespace

void write_features(FileSystem& files, DatasetWriter& writer, const FeatureRows& rows,
                    std::span<const VertexIndex> new_ids, std::int64_t memory_bytes,
                    const Control& control) {
  VertexTensorWriter& features = writer.features(rows.cols);
  if (new_ids.empty()) {
    for_each_batch(rows, memory_bytes, "writing features", control,
                   [&](const std::vector<float>& values, std::int64_t, std::int64_t count) {
                     features.append_rows(values.data(), count);
                   });
    writer.finish_features();
    return;
  }
  const std::string path = writer.scratch_path("features");
  {
    RowBuckets buckets(files, path, rows.vertices, rows.cols, memory_bytes / 2);
    for_each_batch(rows, memory_bytes / 4, "ordering features", control,
                   [&](const std::vector<float>& values, std::int64_t first, std::int64_t count) {
                     for (std::int64_t i = 0; i < count; ++i) {
                       buckets.add(new_ids[static_cast<std::size_t>(first + i)],
                                   values.data() + i * rows.cols);
                     }
                   });
    buckets.for_each([&](std::span<const std::byte> placed, std::int64_t done, std::int64_t count) {
      features.append_rows(placed.data(), count);
      control.step("writing features", static_cast<double>(done + count),
                   static_cast<double>(rows.vertices));
    });
  }
  writer.finish_features();
  files.remove_all(path);
}

}  // namespace ooc
