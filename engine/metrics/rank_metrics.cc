#include "engine/metrics/rank_metrics.h"

#include <tbb/parallel_sort.h>

#include <algorithm>
#include <functional>

namespace ooc {
namespace {

// Columns whose scores are in memory at once.
std::int64_t rank_columns(std::int64_t vertices, std::int64_t cols) {
  constexpr std::int64_t kBytes = 16 << 20;
  return std::clamp<std::int64_t>(kBytes / (vertices * std::int64_t{sizeof(double)}), 1, cols);
}

// The scores of one class in one split.
struct RankColumn {
  std::span<double> positive, negative;
  bool nan = false;

  // Largest first. Not with a NaN among them.
  void sort() {
    tbb::parallel_sort(positive.begin(), positive.end(), std::greater<>());
    tbb::parallel_sort(negative.begin(), negative.end(), std::greater<>());
  }
};

// Both go through the distinct scores of positive vertices, falling: how many of each kind have a
// larger score, and how many have this one.

double roc_auc(const RankColumn& column) {
  const std::size_t positives = column.positive.size(), negatives = column.negative.size();
  std::uint64_t halves = 0;  // of pairs
  std::size_t larger = 0, same_end = 0;
  for (const double score : column.positive) {
    while (larger < negatives && column.negative[larger] > score) ++larger;
    same_end = std::max(same_end, larger);
    while (same_end < negatives && column.negative[same_end] == score) ++same_end;
    halves += 2 * (negatives - same_end) + (same_end - larger);
  }
  return static_cast<double>(halves) / 2 /
         (static_cast<double>(positives) * static_cast<double>(negatives));
}

double average_precision(const RankColumn& column) {
  const std::span<double> positive = column.positive;
  double sum = 0;
  std::size_t above = 0;  // negatives with this score or a larger one
  for (std::size_t begin = 0, end = 0; begin < positive.size(); begin = end) {
    const double score = positive[begin];
    while (end < positive.size() && positive[end] == score) ++end;
    while (above < column.negative.size() && column.negative[above] >= score) ++above;
    const double precision = static_cast<double>(end) / static_cast<double>(end + above);
    sum += precision * static_cast<double>(end - begin);
  }
  return sum / static_cast<double>(positive.size());
}

// Of some columns, by split: all of one column together are no more than the vertices.
using RankColumns = std::array<RankColumn, kSplits>;

struct Ranked {
  std::vector<double> scores;
  std::vector<RankColumns> columns;
};

template <class T>
double score_of(Task task, const T* logits, std::int64_t col) {
  if (task != Task::kSingle) return logits[col];
  return double{logits[1]} - double{logits[0]};
}

bool is_positive(Task task, const RowLabels& labels, std::int64_t col) {
  return task == Task::kMultiLabel ? labels.bit(col) : labels.label() == 1;
}

// By column: how many rows of each split are positive, and how many are not.
using RankCounts = std::vector<std::array<std::array<std::int64_t, 2>, kSplits>>;

RankCounts count_ranked(const MetricRows& rows, std::int64_t cols) {
  RankCounts counts(static_cast<std::size_t>(cols));
  for_each_row(rows, [&](std::size_t split, const RowLabels& labels, const auto*) {
    for (std::int64_t c = 0; c < cols; ++c) {
      if (!labels.labelled(c)) continue;
      ++counts[static_cast<std::size_t>(c)][split][is_positive(rows.task, labels, c) ? 0 : 1];
    }
  });
  return counts;
}

// Cuts memory for so many rows of each kind, and leaves the spans empty.
void lay_out(const RankCounts& counts, std::int64_t first_col, Ranked& ranked) {
  std::size_t at = 0;
  for (std::size_t c = 0; c < ranked.columns.size(); ++c) {
    for (std::size_t split = 0; split < kSplits; ++split) {
      const auto& [positive, negative] = counts[static_cast<std::size_t>(first_col) + c][split];
      double* scores = ranked.scores.data() + at;
      ranked.columns[c][split] = {{scores, 0}, {scores + positive, 0}, false};
      at += static_cast<std::size_t>(positive + negative);
    }
  }
}

void read_columns(const MetricRows& rows, std::int64_t first_col, Ranked& ranked) {
  for_each_row(rows, [&](std::size_t split, const RowLabels& labels, const auto* logits) {
    for (std::size_t c = 0; c < ranked.columns.size(); ++c) {
      const std::int64_t col = first_col + static_cast<std::int64_t>(c);
      if (!labels.labelled(col)) continue;
      const double score = score_of(rows.task, logits, col);
      RankColumn& column = ranked.columns[c][split];
      column.nan = column.nan || std::isnan(score);
      std::span<double>& scores =
          is_positive(rows.task, labels, col) ? column.positive : column.negative;
      scores = {scores.data(), scores.size() + 1};
      scores.back() = score;
    }
  });
}

// The mean over the columns of a split that have both kinds.
struct ColumnMeans {
  std::vector<double> sums;  // by metric
  std::int64_t columns = 0;

  void add(RankColumn& column, std::span<const Metric> wanted) {
    if (column.positive.empty() || column.negative.empty()) return;
    ++columns;
    if (!column.nan) column.sort();
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      sums[i] += column.nan                     ? kUndefined
                 : wanted[i] == Metric::kRocAuc ? roc_auc(column)
                                                : average_precision(column);
    }
  }
};

std::int64_t ranked_columns(Task task, std::int64_t cols) {
  return task == Task::kMultiLabel ? cols : 1;
}

}  // namespace

std::vector<BySplit> rank_metrics(const MetricRows& rows, std::span<const Metric> wanted) {
  OOC_CHECK(rows.task != Task::kSingle || rows.layout().cols == 2);
  const std::int64_t cols = ranked_columns(rows.task, rows.layout().cols);
  const RankCounts counts = count_ranked(rows, cols);
  std::array<ColumnMeans, kSplits> means;
  for (ColumnMeans& split : means) split.sums.resize(wanted.size());
  const std::int64_t together = rank_columns(rows.layout().rows, cols);
  Ranked ranked;
  ranked.scores.resize(static_cast<std::size_t>(together * rows.layout().rows));
  for (std::int64_t first = 0; first < cols; first += together) {
    ranked.columns.resize(static_cast<std::size_t>(std::min(together, cols - first)));
    lay_out(counts, first, ranked);
    read_columns(rows, first, ranked);
    for (RankColumns& columns : ranked.columns) {
      for (std::size_t split = 0; split < kSplits; ++split)
        means[split].add(columns[split], wanted);
    }
  }
  std::vector<BySplit> scores(wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    for (std::size_t split = 0; split < kSplits; ++split) {
      scores[i][split] = means[split].sums[i] / static_cast<double>(means[split].columns);
    }
  }
  return scores;  // NaN for no column
}

std::int64_t rank_readings(Task task, std::int64_t vertices, std::int64_t cols) {
  const std::int64_t columns = ranked_columns(task, cols);
  return 1 + ceil_div(columns, rank_columns(vertices, columns));
}

std::int64_t rank_memory(Task task, std::int64_t vertices, std::int64_t cols) {
  return rank_columns(vertices, ranked_columns(task, cols)) * vertices *
         std::int64_t{sizeof(double)};
}

}  // namespace ooc
