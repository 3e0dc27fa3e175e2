#include "engine/metrics.h"

#include <tbb/parallel_reduce.h>
#include <tbb/parallel_sort.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <functional>
#include <vector>

#include "storage/errors.h"
#include "storage/manifest.h"

namespace ooc {
namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kSplits = 3;

bool is_ranking(Metric metric) {
  return metric == Metric::kRocAuc || metric == Metric::kAveragePrecision;
}

struct Sources {
  Task task;
  const BlockSource& logits;
  const BlockSource& labels;
  const BlockSource& splits;
  std::atomic<std::int64_t>& bytes_read;

  const TensorLayout& layout() const { return logits.layout(); }
  bool many() const { return task == Task::kMultiLabel; }
};

std::int64_t stored_bytes(const BlockSource& source, std::int64_t rows, std::int64_t slice) {
  if (!source.in_storage()) return 0;
  return rows * source.layout().slice_stride(slice) *
         static_cast<std::int64_t>(dtype_bytes(source.dtype()));
}

constexpr std::int64_t kAllColumns = -1;

// One block's rows of a vertex tensor: all columns, or those of the slice that `col` is in.
template <class T>
class BlockRows {
 public:
  BlockRows(const Sources& sources, const BlockSource& source, std::int64_t block,
            std::int64_t col = kAllColumns)
      : layout_(source.layout()), slices_(static_cast<std::size_t>(layout_.slice_count())) {
    for (std::int64_t slice = 0; slice < layout_.slice_count(); ++slice) {
      if (col != kAllColumns && slice != col / kSliceWidth) continue;
      slices_[static_cast<std::size_t>(slice)] = static_cast<const T*>(source.chunk(block, slice));
      sources.bytes_read += stored_bytes(source, layout_.rows_of(block), slice);
    }
  }
  T at(std::int64_t row, std::int64_t col) const {
    const std::int64_t slice = col / kSliceWidth;
    return slices_[static_cast<std::size_t>(slice)]
                  [row * layout_.slice_stride(slice) + col % kSliceWidth];
  }

 private:
  const TensorLayout& layout_;
  std::vector<const T*> slices_;
};

// Calls visit(split, row) for the rows of a block that are in a split, 0 for train.
template <class Visit>
void for_each_row(const Sources& sources, std::int64_t block, Visit&& visit) {
  const BlockRows<std::uint8_t> splits(sources, sources.splits, block);
  const std::int64_t rows = sources.layout().rows_of(block);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::uint8_t split = splits.at(row, 0);
    OOC_CHECK(split <= kSplits);
    if (split > 0) visit(static_cast<std::size_t>(split - 1), row);
  }
}

// A class a vertex, or a truth value a class.
class Labels {
 public:
  // Of a multi-label task all columns, or `col` alone.
  Labels(const Sources& sources, std::int64_t block, std::int64_t col = kAllColumns)
      : first_(std::max<std::int64_t>(0, col)) {
    if (!sources.many()) {
      single_.emplace_back(sources, sources.labels, block);
    } else {
      bits_.emplace_back(sources, sources.labels, block, col);
    }
  }
  bool labelled(std::int64_t row) const {
    return single_.empty() ? bits_[0].at(row, first_) != kUnlabelled : single_[0].at(row, 0) >= 0;
  }
  bool bit(std::int64_t row, std::int64_t col) const { return bits_[0].at(row, col) == 1; }
  std::int64_t label(std::int64_t row) const { return single_[0].at(row, 0); }

 private:
  std::vector<BlockRows<std::int32_t>> single_;  // one of the two
  std::vector<BlockRows<std::uint8_t>> bits_;
  std::int64_t first_;  // a column that is there
};

struct ClassCounts {
  std::int64_t hits = 0, predicted = 0, labelled = 0;

  double f1() const {
    const std::int64_t both = predicted + labelled;
    return both == 0 ? 0 : 2.0 * static_cast<double>(hits) / static_cast<double>(both);
  }
};

struct SplitCounts {
  std::int64_t vertices = 0;
  std::vector<ClassCounts> classes;
};
using AllCounts = std::array<SplitCounts, kSplits>;

void add(AllCounts& to, const AllCounts& from) {
  for (std::size_t split = 0; split < kSplits; ++split) {
    to[split].vertices += from[split].vertices;
    for (std::size_t c = 0; c < to[split].classes.size(); ++c) {
      to[split].classes[c].hits += from[split].classes[c].hits;
      to[split].classes[c].predicted += from[split].classes[c].predicted;
      to[split].classes[c].labelled += from[split].classes[c].labelled;
    }
  }
}

template <class T>
std::int64_t largest(const BlockRows<T>& logits, std::int64_t row, std::int64_t cols) {
  std::int64_t best = 0;
  for (std::int64_t c = 1; c < cols; ++c) {
    if (logits.at(row, c) > logits.at(row, best)) best = c;
  }
  return best;
}

template <class T>
void count_block(const Sources& sources, std::int64_t block, AllCounts& counts) {
  const BlockRows<T> logits(sources, sources.logits, block);
  const Labels labels(sources, block);
  const std::int64_t cols = sources.layout().cols;
  for_each_row(sources, block, [&](std::size_t split, std::int64_t row) {
    if (!labels.labelled(row)) return;
    SplitCounts& to = counts[split];
    ++to.vertices;
    if (!sources.many()) {
      const std::int64_t label = labels.label(row);
      const std::int64_t predicted = sources.task == Task::kSingle ? largest(logits, row, cols)
                                     : logits.at(row, 0) > 0       ? 1
                                                                   : 0;
      ++to.classes[static_cast<std::size_t>(label)].labelled;
      ++to.classes[static_cast<std::size_t>(predicted)].predicted;
      if (label == predicted) ++to.classes[static_cast<std::size_t>(label)].hits;
      return;
    }
    for (std::int64_t c = 0; c < cols; ++c) {
      const bool label = labels.bit(row, c), predicted = logits.at(row, c) > 0;
      ClassCounts& of_class = to.classes[static_cast<std::size_t>(c)];
      of_class.labelled += label ? 1 : 0;
      of_class.predicted += predicted ? 1 : 0;
      of_class.hits += label && predicted ? 1 : 0;
    }
  });
}

template <class T>
AllCounts count(const Sources& sources) {
  const std::int64_t classes = sources.task == Task::kBinary ? 2 : sources.layout().cols;
  AllCounts none;
  for (SplitCounts& split : none) split.classes.resize(static_cast<std::size_t>(classes));
  using Range = tbb::blocked_range<std::int64_t>;
  return tbb::parallel_reduce(
      Range(0, sources.layout().block_count()), none,
      [&](const Range& range, AllCounts counts) {
        for (std::int64_t b = range.begin(); b < range.end(); ++b) {
          count_block<T>(sources, b, counts);
        }
        return counts;
      },
      [](AllCounts a, const AllCounts& b) {
        add(a, b);
        return a;
      });
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
  std::vector<double> positive, negative;
  bool nan = false;

  void clear() {
    positive.clear();
    negative.clear();
    nan = false;
  }
  void add(double score, bool label) {
    nan = nan || std::isnan(score);
    (label ? positive : negative).push_back(score);
  }
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
  const std::vector<double>& positive = column.positive;
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

using RankColumns = std::array<RankColumn, kSplits>;

template <class T>
void read_column(const Sources& sources, std::int64_t col, RankColumns& columns) {
  for (RankColumn& column : columns) column.clear();
  for (std::int64_t block = 0; block < sources.layout().block_count(); ++block) {
    const BlockRows<T> logits(sources, sources.logits, block, col);
    const Labels labels(sources, block, col);
    for_each_row(sources, block, [&](std::size_t split, std::int64_t row) {
      if (!labels.labelled(row)) return;
      if (sources.task == Task::kSingle) {
        const double lower = logits.at(row, 0);
        columns[split].add(logits.at(row, 1) - lower, labels.label(row) == 1);
      } else {
        columns[split].add(logits.at(row, col),
                           sources.many() ? labels.bit(row, col) : labels.label(row) == 1);
      }
    });
  }
}

template <class T>
std::array<double, kSplits> rank_metric(const Sources& sources, Metric metric) {
  OOC_CHECK(sources.task != Task::kSingle || sources.layout().cols == 2);
  const std::int64_t cols = sources.many() ? sources.layout().cols : 1;
  std::array<double, kSplits> sums{};
  std::array<std::int64_t, kSplits> classes{};
  RankColumns columns;
  for (std::int64_t c = 0; c < cols; ++c) {
    read_column<T>(sources, c, columns);
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

MetricResult compute_metric(Metric metric, Task task, const BlockSource& logits,
                            const BlockSource& labels, const BlockSource& splits) {
  OOC_CHECK(needs_logits(metric, task));
  std::atomic<std::int64_t> bytes_read = 0;
  const Sources sources{task, logits, labels, splits, bytes_read};
  const auto [train, valid, test] = logits.dtype() == DType::kF64 ? compute<double>(metric, sources)
                                                                  : compute<float>(metric, sources);
  return {{train, valid, test}, bytes_read};
}

std::int64_t metric_bytes(Metric metric, Task task, const BlockSource& labels,
                          const BlockSource& splits) {
  if (!needs_logits(metric, task)) return 0;
  const TensorLayout& layout = labels.layout();
  const bool by_column = is_ranking(metric) && task == Task::kMultiLabel;
  std::int64_t bytes = stored_bytes(splits, layout.rows, 0) * (by_column ? layout.cols : 1);
  for (std::int64_t slice = 0; slice < layout.slice_count(); ++slice) {
    bytes += stored_bytes(labels, layout.rows, slice) * (by_column ? layout.slice_cols(slice) : 1);
  }
  return bytes;
}

}  // namespace ooc
