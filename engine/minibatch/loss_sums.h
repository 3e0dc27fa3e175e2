// The losses of batches, added up.
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "engine/train/program_run.h"
#include "storage/format/manifest.h"

namespace ooc {

// By split, in the order of the batches; as a loss' reduction has them.
class LossSums {
 public:
  void add(std::span<const double> sums) {
    const std::size_t cols = sums.size() / rows_.size();
    for (std::size_t split = 0; split < rows_.size(); ++split) {
      rows_[split].resize(cols);
      for (std::size_t c = 0; c < cols; ++c) rows_[split][c] += sums[split * cols + c];
    }
  }
  // Of the training split alone: what is kept of it, and goes on from there. Empty: no batch yet.
  const std::vector<double>& of_training() const { return rows_.front(); }
  void restore(const std::vector<double>& of_training) {
    for (std::vector<double>& row : rows_) row.assign(of_training.size(), 0);
    rows_.front() = of_training;
  }

  SplitLoss of(Split split) const {
    const std::vector<double>& row = rows_[static_cast<std::size_t>(split) - 1];
    if (row.empty()) return {std::numeric_limits<double>::quiet_NaN()};
    return {row[0] / row.back(),
            row.size() > 2 ? row[1] / row[2] : std::numeric_limits<double>::quiet_NaN()};
  }

 private:
  std::array<std::vector<double>, 3> rows_;
};

}  // namespace ooc
