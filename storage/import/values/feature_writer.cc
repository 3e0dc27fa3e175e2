#include "storage/import/values/feature_writer.h"

#include <fmt/format.h>
#include <tbb/concurrent_queue.h>
#include <tbb/parallel_pipeline.h>

#include <algorithm>
#include <memory>

#include "storage/base/aligned_vector.h"
#include "storage/base/errors.h"
#include "storage/base/half.h"
#include "storage/import/rows/row_placer.h"

namespace ooc {
namespace {

constexpr std::int64_t kLeastBatchBytes = 1 << 20;
constexpr std::int64_t kMostBatchBytes = 32 << 20;
constexpr std::int64_t kTokens = 3;  // one read, one worked on, one written

struct Batch {
  AlignedVector<float> values;
  AlignedVector<std::byte> narrowed;  // where they are stored in another type
  std::int64_t first_row = 0;
  std::int64_t rows = 0;

  std::span<const std::byte> stored() const {
    return narrowed.empty() ? std::as_bytes(std::span(values)) : std::span(narrowed);
  }
};

void narrow_batch(const FeatureRows& rows, Batch& batch) {
  if (rows.dtype == DType::kF32) return;
  batch.narrowed.resize(batch.values.size() * dtype_bytes(rows.dtype));
  const auto lost =
      narrow(batch.values.data(), rows.dtype, batch.narrowed.data(), batch.values.size());
  if (!lost) return;
  const auto place = static_cast<std::int64_t>(*lost);
  throw DataError(
      fmt::format("{} is too large for {}", batch.values[*lost], dtype_name(rows.dtype)),
      fmt::format("{}, row {}, column {}", rows.name, batch.first_row + place / rows.cols,
                  place % rows.cols),
      "store the features as --dtype bf16 or fp32, or normalise them");
}

// Batches of whole blocks where they are that large, so that chunks are written whole.
std::int64_t batch_rows(const FeatureRows& rows, std::int64_t block_rows,
                        std::int64_t memory_bytes) {
  const std::int64_t row_bytes = rows.cols * static_cast<std::int64_t>(sizeof(float));
  const std::int64_t bytes =
      std::clamp(memory_bytes / (2 * kTokens), kLeastBatchBytes, kMostBatchBytes);
  const std::int64_t count = std::max<std::int64_t>(1, bytes / row_bytes);
  return count > block_rows ? count / block_rows * block_rows : count;
}

}  // namespace

void write_features(FileSystem& files, DatasetWriter& writer, const FeatureRows& rows,
                    std::span<const VertexIndex> new_ids, std::int64_t memory_bytes,
                    const Control& control) {
  const auto row_bytes = static_cast<std::size_t>(rows.cols) * dtype_bytes(rows.dtype);
  RowPlacer placer(files, writer.features(rows.cols, rows.dtype), new_ids,
                   {writer.scratch_path("features"), rows.vertices, row_bytes, memory_bytes / 2});
  const std::int64_t at_once =
      batch_rows(rows, writer.manifest().edges.block_rows, memory_bytes / 2);
  std::int64_t read = 0, done = 0;
  using Token = std::shared_ptr<Batch>;
  tbb::concurrent_queue<Token> idle;  // batches whose memory serves again
  const auto next = [&](tbb::flow_control& flow) {
    Token batch;
    if (!idle.try_pop(batch)) batch = std::make_shared<Batch>();
    batch->values.resize(static_cast<std::size_t>(at_once * rows.cols));
    batch->first_row = read;
    batch->rows = rows.next(batch->values);
    batch->values.resize(static_cast<std::size_t>(batch->rows * rows.cols));
    read += batch->rows;
    if (batch->rows == 0) flow.stop();
    return batch;
  };
  const auto transform = [&](Token batch) {
    if (rows.transform) rows.transform(batch->values);
    narrow_batch(rows, *batch);
    return batch;
  };
  const auto hand_on = [&](const Token& batch) {
    placer.add(batch->stored());
    done += batch->rows;
    idle.push(batch);
    control.step(new_ids.empty() ? "writing features" : "ordering features",
                 static_cast<double>(done), static_cast<double>(rows.vertices));
  };
  tbb::parallel_pipeline(
      kTokens, tbb::make_filter<void, Token>(tbb::filter_mode::serial_in_order, next) &
                   tbb::make_filter<Token, Token>(tbb::filter_mode::parallel, transform) &
                   tbb::make_filter<Token, void>(tbb::filter_mode::serial_in_order, hand_on));
  OOC_CHECK(done == rows.vertices);
  placer.finish("writing features", control);
  writer.finish_features();
}

}  // namespace ooc
