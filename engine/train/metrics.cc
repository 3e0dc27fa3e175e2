#include "engine/train/metrics.h"

#include <tbb/parallel_sort.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <span>
#include <vector>

#include "storage/base/errors.h"
#include "storage/format/manifest.h"

namespace ooc {
namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kSplits = 3;

bool is_ranking(Metric metric) {
  return metric == Metric::kRocAuc || metric == Metric::kAveragePrecision;
}

struct Stopped {};

// What one evaluation left, row by row.
struct Sources {
  Task task;
  BlockRows& logits;
  BlockRows& labels;
  BlockRows& splits;
  const std::atomic<bool>* stop;

  const TensorLayout& layout() const { return logits.layout(); }
  bool many() const { return task == Task::kMultiLabel; }
};

// A row of the labels: a class, or a truth value a class.
class RowLabels {
 public:
  RowLabels(Task task, const void* rows, std::int64_t row, std::int64_t cols) {
    if (task == Task::kMultiLabel) {
      bits_ = static_cast<const std::uint8_t*>(rows) + row * cols;
    } else {
      label_ = static_cast<const std::int32_t*>(rows)[row];
    }
  }
  bool labelled() const { return bits_ != nullptr ? bits_[0] != kUnlabelled : label_ >= 0; }
  bool bit(std::int64_t col) const { return bits_[col] == 1; }
  std::int64_t label() const { return label_; }

 private:
  const std::uint8_t* bits_ = nullptr;
  std::int64_t label_ = -1;
};

// Calls visit(split, labels, logits) for the labelled rows that are in a split, 0 for train.
template <class T, class Visit>
void for_each_row(const Sources& sources, Visit&& visit) {
  const TensorLayout& layout = sources.layout();
  for (std::int64_t block = 0; block < layout.block_count(); ++block) {
    if (sources.stop != nullptr && sources.stop->load()) throw Stopped();
    const auto* splits = static_cast<const std::uint8_t*>(sources.splits.block(block));
    const void* labels = sources.labels.block(block);
    const auto* logits = static_cast<const T*>(sources.logits.block(block));
    for (std::int64_t row = 0; row < layout.rows_of(block); ++row) {
      OOC_CHECK(splits[row] <= kSplits);
      const RowLabels of_row(sources.task, labels, row, layout.cols);
      if (splits[row] == 0 || !of_row.labelled()) continue;
      visit(static_cast<std::size_t>(splits[row] - 1), of_row, logits + row * layout.cols);
    }
  }
}

struct ClassCounts {
  std::int64_t hits = 0, predicted = 0, labelled = 0;

  double f1() const {
    const std::int64_t both = predicted + labelled;
    return both == 0 ? 0 : 2.0 * static_cast<double>(hits) / static_cast<double>(both);
  }
};

// Columns whose scores are in memory at once.
std::int64_t rank_columns(std::int64_t vertices, std::int64_t cols) {
  constexpr std::int64_t kBytes = 16 << 20;
  return std::clamp<std::int64_t>(kBytes / (vertices * std::int64_t{sizeof(double)}), 1, cols);
}

struct SplitCounts {
  std::int64_t vertices = 0;
  std::vector<ClassCounts> classes;
};
using AllCounts = std::array<SplitCounts, kSplits>;

template <class T>
void count_row(const Sources& sources, const RowLabels& labels, const T* logits, SplitCounts& to) {
  const std::int64_t cols = sources.layout().cols;
  ++to.vertices;
  if (!sources.many()) {
    const auto label = static_cast<std::size_t>(labels.label());
    const auto predicted = static_cast<std::size_t>(
        sources.task == Task::kSingle ? std::max_element(logits, logits + cols) - logits
                                      : logits[0] > 0);
    ++to.classes[label].labelled;
    ++to.classes[predicted].predicted;
    if (label == predicted) ++to.classes[label].hits;
    return;
  }
  for (std::int64_t c = 0; c < cols; ++c) {
    const bool label = labels.bit(c), predicted = logits[c] > 0;
    ClassCounts& of_class = to.classes[static_cast<std::size_t>(c)];
    of_class.labelled += label ? 1 : 0;
    of_class.predicted += predicted ? 1 : 0;
    of_class.hits += label && predicted ? 1 : 0;
  }
}

template <class T>
AllCounts count(const Sources& sources) {
  const std::int64_t classes = sources.task == Task::kBinary ? 2 : sources.layout().cols;
  AllCounts counts;
  for (SplitCounts& split : counts) split.classes.resize(static_cast<std::size_t>(classes));
  for_each_row<T>(sources, [&](std::size_t split, const RowLabels& labels, const T* logits) {
    count_row(sources, labels, logits, counts[split]);
  });
  return counts;
}

double f1(const SplitCounts& split, Metric metric, bool many) {
  if (split.vertices == 0) return kUndefined;
  ClassCounts all;
  double sum = 0;
  std::int64_t classes = 0;
  for (const ClassCounts& of_class : split.classes) {
    all.hits += of_class.hits;
    all.predicted += of_class.predicted;
    all.labelled += of_class.labelled;
    if (!many && of_class.predicted + of_class.labelled == 0) continue;
    sum += of_class.f1();
    ++classes;
  }
  return metric == Metric::kMicroF1 ? all.f1() : sum / static_cast<double>(classes);
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

template <class T>
void read_columns(const Sources& sources, std::int64_t first_col, Ranked& ranked) {
  for_each_row<T>(sources, [&](std::size_t split, const RowLabels& labels, const T* logits) {
    for (std::size_t c = 0; c < ranked.columns.size(); ++c) {
      const std::int64_t col = first_col + static_cast<std::int64_t>(c);
      const double score = score_of(sources.task, logits, col);
      RankColumn& column = ranked.columns[c][split];
      column.nan = column.nan || std::isnan(score);
      std::span<double>& scores =
          is_positive(sources.task, labels, col) ? column.positive : column.negative;
      scores = {scores.data(), scores.size() + 1};
      scores.back() = score;
    }
  });
}

template <class T>
std::array<double, kSplits> rank_metric(const Sources& sources, Metric metric) {
  OOC_CHECK(sources.task != Task::kSingle || sources.layout().cols == 2);
  const std::int64_t cols = sources.many() ? sources.layout().cols : 1;
  RankCounts counts(static_cast<std::size_t>(cols));
  for_each_row<T>(sources, [&](std::size_t split, const RowLabels& labels, const T*) {
    for (std::int64_t c = 0; c < cols; ++c) {
      ++counts[static_cast<std::size_t>(c)][split][is_positive(sources.task, labels, c) ? 0 : 1];
    }
  });
  std::array<double, kSplits> sums{};
  std::array<std::int64_t, kSplits> classes{};
  const std::int64_t together = rank_columns(sources.layout().rows, cols);
  Ranked ranked;
  ranked.scores.resize(static_cast<std::size_t>(together * sources.layout().rows));
  for (std::int64_t first = 0; first < cols; first += together) {
    ranked.columns.resize(static_cast<std::size_t>(std::min(together, cols - first)));
    lay_out(counts, first, ranked);
    read_columns<T>(sources, first, ranked);
    for (RankColumns& columns : ranked.columns) {
      for (std::size_t split = 0; split < kSplits; ++split) {
        RankColumn& column = columns[split];
        if (column.positive.empty() || column.negative.empty()) continue;
        ++classes[split];
        if (column.nan) {
          sums[split] = kUndefined;
          continue;
        }
        column.sort();
        sums[split] += metric == Metric::kRocAuc ? roc_auc(column) : average_precision(column);
      }
    }
  }
  for (std::size_t split = 0; split < kSplits; ++split) {
    sums[split] /= static_cast<double>(classes[split]);  // NaN for none
  }
  return sums;
}

template <class T>
std::array<double, kSplits> compute(Metric metric, const Sources& sources) {
  if (is_ranking(metric)) return rank_metric<T>(sources, metric);
  const AllCounts counts = count<T>(sources);
  std::array<double, kSplits> scores{};
  for (std::size_t split = 0; split < kSplits; ++split) {
    scores[split] = f1(counts[split], metric, sources.many());
  }
  return scores;
}

}  // namespace

bool needs_logits(Metric metric, Task task) {
  if (metric == Metric::kMicroF1) return task == Task::kMultiLabel;
  return metric != Metric::kAccuracy;
}

std::optional<Scores> compute_metric(Metric metric, Task task, BlockRows& logits, BlockRows& labels,
                                     BlockRows& splits, const std::atomic<bool>* stop) {
  OOC_CHECK(needs_logits(metric, task));
  const Sources sources{task, logits, labels, splits, stop};
  try {
    const auto [train, valid, test] = logits.dtype() == DType::kF64
                                          ? compute<double>(metric, sources)
                                          : compute<float>(metric, sources);
    return Scores{train, valid, test};
  } catch (const Stopped&) {
    return std::nullopt;
  }
}

std::int64_t metric_readings(Metric metric, Task task, std::int64_t vertices, std::int64_t cols) {
  if (!needs_logits(metric, task)) return 0;
  if (!is_ranking(metric)) return 1;
  const std::int64_t columns = task == Task::kMultiLabel ? cols : 1;
  return 1 + ceil_div(columns, rank_columns(vertices, columns));
}

std::int64_t metric_memory(Metric metric, Task task, std::int64_t vertices, std::int64_t cols) {
  if (!is_ranking(metric)) return 0;
  return rank_columns(vertices, task == Task::kMultiLabel ? cols : 1) * vertices *
         std::int64_t{sizeof(double)};
}

}  // namespace ooc
