#include "engine/batches/judged_rows.h"

#include <algorithm>

namespace ooc {

void JudgedRows::append(const MatrixView& rows, Column& column) {
  column.dtype = rows.dtype;
  column.cols = rows.cols;
  const std::size_t bytes = dtype_bytes(rows.dtype);
  const std::int64_t slices = rows.slice_count();
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    for (std::int64_t slice = 0; slice < slices; ++slice) {
      const std::byte* const at =
          rows.slices.slice(slice, slices) +
          static_cast<std::size_t>((rows.row_offset + row) * rows.stride(slice)) * bytes;
      column.rows.insert(column.rows.end(), at,
                         at + static_cast<std::size_t>(rows.slice_cols(slice)) * bytes);
    }
  }
}

void JudgedRows::add(const MatrixView& logits, const LoadedBatch& batch) {
  append(logits, logits_);
  append(batch.seed_rows("labels"), labels_);
  append(batch.seed_rows("splits"), splits_);
  rows_ += logits.rows;
}

BlockRows JudgedRows::rows_of(const Column& column) const {
  const TensorLayout layout{rows_, column.cols, kDefaultBlockRows};
  const std::size_t row_bytes = static_cast<std::size_t>(column.cols) * dtype_bytes(column.dtype);
  return {column.dtype, layout, 1,
          [&column, layout, row_bytes](std::int64_t first, std::int64_t end, std::byte* rows) {
            const std::int64_t end_row = std::min(end * layout.block_rows, layout.rows);
            const auto at = static_cast<std::size_t>(first * layout.block_rows) * row_bytes;
            std::copy_n(column.rows.data() + at, static_cast<std::size_t>(end_row) * row_bytes - at,
                        rows);
          }};
}

std::optional<std::vector<Scores>> JudgedRows::scores(std::span<const Metric> metrics, Task task,
                                                      const std::atomic<bool>* stop) const {
  if (rows_ == 0) return std::vector<Scores>(metrics.size());
  BlockRows logits = rows_of(logits_), labels = rows_of(labels_), splits = rows_of(splits_);
  return compute_metrics(metrics, task, logits, labels, splits, stop);
}

std::int64_t JudgedRows::bytes(const ModelProgram& evaluation, const RunConfig& config,
                               LabelKind kind, std::int64_t classes, std::int64_t rows) {
  constexpr std::int64_t kGrown = 2;  // vectors grow by doubling
  if (!need_logits(config.metrics, config.model.task)) return 0;
  const auto row_bytes = [](std::int64_t cols, DType dtype) {
    return cols * static_cast<std::int64_t>(dtype_bytes(dtype));
  };
  const TensorId logits = evaluation.evaluated().logits;
  const std::int64_t cols = evaluation.model().graph.shape(logits).cols;
  const std::int64_t labels = row_bytes(label_cols(kind, classes), label_dtype(kind));
  return rows * kGrown * (row_bytes(cols, evaluation.real()) + labels + 1) +
         metric_memory(config.metrics, config.model.task, rows, cols);
}

}  // namespace ooc
