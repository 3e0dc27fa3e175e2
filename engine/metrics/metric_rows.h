// What metrics walk over: the logits, labels and splits of an evaluation, row by row.
#pragma once

#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>

#include "engine/metrics/block_rows.h"
#include "engine/model/parts/task.h"
#include "storage/base/errors.h"
#include "storage/format/manifest.h"

namespace ooc {

inline constexpr std::size_t kSplits = 3;
inline constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();
// A figure by split: train, valid, test.
using BySplit = std::array<double, kSplits>;

struct MetricStopped {};

struct MetricRows {
  Task task;
  BlockRows& logits;  // fp32 or fp64
  BlockRows& labels;
  BlockRows& splits;
  const std::atomic<bool>* stop;

  const TensorLayout& layout() const { return logits.layout(); }
  bool many() const { return task == Task::kMultiLabel; }
};

// A row of the labels: a class, or a truth value a class, or a value a target.
class RowLabels {
 public:
  RowLabels(Task task, const void* rows, std::int64_t row, std::int64_t cols) {
    if (task == Task::kMultiLabel) {
      bits_ = static_cast<const std::uint8_t*>(rows) + row * cols;
    } else if (task == Task::kRegression) {
      values_ = static_cast<const float*>(rows) + row * cols;
    } else {
      label_ = static_cast<const std::int32_t*>(rows)[row];
    }
  }
  bool labelled(std::int64_t col) const {
    if (bits_ != nullptr) return bits_[col] != kUnlabelled;
    return values_ != nullptr ? !std::isnan(values_[col]) : label_ >= 0;
  }
  bool bit(std::int64_t col) const { return bits_[col] == 1; }
  double value(std::int64_t col) const { return values_[col]; }
  std::int64_t label() const { return label_; }

 private:
  const std::uint8_t* bits_ = nullptr;
  const float* values_ = nullptr;
  std::int64_t label_ = -1;
};

// Calls visit(split, labels, logits) for the rows that are in a split, 0 for train. Throws
// MetricStopped once `stop` is set.
template <class Visit>
void for_each_row(const MetricRows& rows, Visit&& visit) {
  const auto visit_all = [&]<class T>(const T*) {
    const TensorLayout& layout = rows.layout();
    for (std::int64_t block = 0; block < layout.block_count(); ++block) {
      if (rows.stop != nullptr && rows.stop->load()) throw MetricStopped();
      const auto* splits = static_cast<const std::uint8_t*>(rows.splits.block(block));
      const void* labels = rows.labels.block(block);
      const auto* logits = static_cast<const T*>(rows.logits.block(block));
      for (std::int64_t row = 0; row < layout.rows_of(block); ++row) {
        OOC_CHECK(splits[row] <= kSplits);
        if (splits[row] == 0) continue;
        visit(static_cast<std::size_t>(splits[row] - 1),
              RowLabels(rows.task, labels, row, layout.cols), logits + row * layout.cols);
      }
    }
  };
  if (rows.logits.dtype() == DType::kF64) {
    visit_all(static_cast<const double*>(nullptr));
  } else {
    visit_all(static_cast<const float*>(nullptr));
  }
}

}  // namespace ooc
