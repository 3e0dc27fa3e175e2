#include "engine/metrics/count_metrics.h"

#include <algorithm>

namespace ooc {
namespace {

struct ClassCounts {
  std::int64_t hits = 0, predicted = 0, positive = 0;
  std::int64_t labelled = 0;  // of many classes a vertex: vertices that are labelled for this one

  double f1() const {
    const std::int64_t both = predicted + positive;
    return both == 0 ? 0 : 2.0 * static_cast<double>(hits) / static_cast<double>(both);
  }
};
using Counts = std::array<std::vector<ClassCounts>, kSplits>;

template <class T>
void count_row(const MetricRows& rows, const RowLabels& labels, const T* logits,
               std::vector<ClassCounts>& to) {
  const std::int64_t cols = rows.layout().cols;
  if (!rows.many()) {
    if (!labels.labelled(0)) return;
    const auto label = static_cast<std::size_t>(labels.label());
    const auto predicted = static_cast<std::size_t>(
        rows.task == Task::kSingle ? std::max_element(logits, logits + cols) - logits
                                   : logits[0] > 0);
    ++to[label].positive;
    ++to[predicted].predicted;
    if (label == predicted) ++to[label].hits;
    return;
  }
  for (std::int64_t c = 0; c < cols; ++c) {
    if (!labels.labelled(c)) continue;
    const bool label = labels.bit(c), predicted = logits[c] > 0;
    ClassCounts& of_class = to[static_cast<std::size_t>(c)];
    ++of_class.labelled;
    of_class.positive += label ? 1 : 0;
    of_class.predicted += predicted ? 1 : 0;
    of_class.hits += label && predicted ? 1 : 0;
  }
}

double f1(const std::vector<ClassCounts>& split, Metric metric, bool many) {
  ClassCounts all;
  double sum = 0;
  std::int64_t classes = 0;
  for (const ClassCounts& of_class : split) {
    all.hits += of_class.hits;
    all.predicted += of_class.predicted;
    all.positive += of_class.positive;
    if (many ? of_class.labelled == 0 : of_class.predicted + of_class.positive == 0) continue;
    sum += of_class.f1();
    ++classes;
  }
  if (classes == 0) return kUndefined;
  return metric == Metric::kMicroF1 ? all.f1() : sum / static_cast<double>(classes);
}

}  // namespace

std::vector<BySplit> count_metrics(const MetricRows& rows, std::span<const Metric> wanted) {
  const std::int64_t classes = rows.task == Task::kBinary ? 2 : rows.layout().cols;
  Counts counts;
  for (auto& split : counts) split.resize(static_cast<std::size_t>(classes));
  for_each_row(rows, [&](std::size_t split, const RowLabels& labels, const auto* logits) {
    count_row(rows, labels, logits, counts[split]);
  });
  std::vector<BySplit> scores(wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    for (std::size_t split = 0; split < kSplits; ++split) {
      scores[i][split] = f1(counts[split], wanted[i], rows.many());
    }
  }
  return scores;
}

}  // namespace ooc
