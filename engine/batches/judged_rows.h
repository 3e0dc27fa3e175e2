// What an evaluation by batches leaves for metrics: rows of the vertices that it judges.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/batches/loaded_batch.h"
#include "engine/metrics/metrics.h"
#include "engine/model/program.h"
#include "engine/train/run_config.h"
#include "kernels/spec/matrix_view.h"

namespace ooc {

// Logits, labels and splits of as many vertices as batches were added, row-major. One thread.
class JudgedRows {
 public:
  // Of a batch that an evaluation ran on.
  void add(const MatrixView& logits, const LoadedBatch& batch);
  // As compute_metrics().
  std::optional<std::vector<Scores>> scores(std::span<const Metric> metrics, Task task,
                                            const std::atomic<bool>* stop) const;
  // Of memory, with what the metrics take: of so many rows, where one of them needs logits.
  static std::int64_t bytes(const ModelProgram& evaluation, const RunConfig& config, LabelKind kind,
                            std::int64_t classes, std::int64_t rows);

 private:
  struct Column {
    DType dtype = DType::kF32;
    std::int64_t cols = 0;
    std::vector<std::byte> rows;
  };
  static void append(const MatrixView& rows, Column& column);
  BlockRows rows_of(const Column& column) const;

  std::int64_t rows_ = 0;
  Column logits_, labels_, splits_;
};

}  // namespace ooc
