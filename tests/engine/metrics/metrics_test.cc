#include "engine/metrics/metrics.h"

#include <tbb/global_control.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <set>

#include "engine/model/parts/words.h"
#include "storage/format/manifest.h"
#include "tests/engine/metrics/metric_rows.h"

using namespace ooc;

namespace {

// Few distinct logits, so that many are equal; some vertices and single entries unlabelled, some in
// no split; the last class of many is never a label.
template <class T>
test::MetricInputs<T> random_rows(Task task, std::int64_t vertices, std::int64_t cols,
                                  std::int64_t block_rows) {
  test::MetricInputs<T> rows(task, vertices, cols, block_rows);
  std::mt19937_64 random(static_cast<std::uint64_t>(vertices * 31 + cols));
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  for (std::int64_t v = 0; v < vertices; ++v) {
    rows.splits.at(v, 0) = static_cast<std::uint8_t>(below(4));
    const bool labelled = below(8) != 0;
    const std::int64_t classes = task == Task::kBinary ? 2 : cols > 3 ? cols - 1 : cols;
    rows.single.at(v, 0) = labelled ? static_cast<std::int32_t>(below(classes)) : -1;
    for (std::int64_t c = 0; c < cols; ++c) {
      rows.logits.at(v, c) = static_cast<T>(below(9) - 5) / T{4};
      const bool bit = below(3) == 0 && (cols < 3 || c < cols - 1);
      const bool missing = !labelled || below(6) == 0;
      rows.bits.at(v, c) = missing ? kUnlabelled : static_cast<std::uint8_t>(bit);
    }
  }
  return rows;
}

// What a metric is, from the definition: truth values and scores of the vertices of one split.
struct Plain {
  std::vector<std::vector<bool>> truth, predicted;  // by class, by vertex
  std::vector<std::vector<double>> scores;          // of the classes that are ranked
  std::vector<std::vector<bool>> ranked;
};

template <class T>
Plain plain_of(test::MetricInputs<T>& rows, std::uint8_t split) {
  Plain plain;
  const std::int64_t classes = rows.task == Task::kBinary ? 2 : rows.cols;
  const std::int64_t ranked = rows.task == Task::kMultiLabel ? rows.cols : 1;
  plain.truth.resize(static_cast<std::size_t>(classes));
  plain.predicted.resize(plain.truth.size());
  plain.scores.resize(static_cast<std::size_t>(ranked));
  plain.ranked.resize(plain.scores.size());
  for (std::int64_t v = 0; v < rows.rows; ++v) {
    if (rows.splits.at(v, 0) != split) continue;
    if (rows.task != Task::kMultiLabel && rows.single.at(v, 0) < 0) continue;
    const auto is_missing = [&](std::int64_t c) {
      return rows.task == Task::kMultiLabel && rows.bits.at(v, c) == kUnlabelled;
    };
    std::int64_t largest = 0;
    for (std::int64_t c = 0; c < rows.cols; ++c) {
      if (rows.logits.at(v, c) > rows.logits.at(v, largest)) largest = c;
    }
    for (std::int64_t c = 0; c < classes; ++c) {
      bool truth = false, predicted = false;
      if (is_missing(c)) continue;
      if (rows.task == Task::kMultiLabel) {
        truth = rows.bits.at(v, c) == 1;
        predicted = rows.logits.at(v, c) > 0;
      } else if (rows.task == Task::kBinary) {
        truth = rows.single.at(v, 0) == c;
        predicted = (rows.logits.at(v, 0) > 0) == (c == 1);
      } else {
        truth = rows.single.at(v, 0) == c;
        predicted = largest == c;
      }
      plain.truth[static_cast<std::size_t>(c)].push_back(truth);
      plain.predicted[static_cast<std::size_t>(c)].push_back(predicted);
    }
    for (std::int64_t c = 0; c < ranked; ++c) {
      if (is_missing(c)) continue;
      const auto at = static_cast<std::size_t>(c);
      const bool two = rows.task == Task::kSingle;
      plain.scores[at].push_back(two ? double{rows.logits.at(v, 1)} - double{rows.logits.at(v, 0)}
                                     : double{rows.logits.at(v, c)});
      plain.ranked[at].push_back(rows.task == Task::kMultiLabel ? rows.bits.at(v, c) == 1
                                                                : rows.single.at(v, 0) == 1);
    }
  }
  return plain;
}

double plain_f1(const Plain& plain, Metric metric, bool many) {
  if (plain.truth[0].empty()) return test::kNan;
  double hits = 0, wrong = 0, sum = 0, classes = 0;
  for (std::size_t c = 0; c < plain.truth.size(); ++c) {
    double tp = 0, fp = 0, fn = 0;
    for (std::size_t i = 0; i < plain.truth[c].size(); ++i) {
      tp += plain.truth[c][i] && plain.predicted[c][i];
      fp += !plain.truth[c][i] && plain.predicted[c][i];
      fn += plain.truth[c][i] && !plain.predicted[c][i];
    }
    hits += tp;
    wrong += fp + fn;
    if (tp + fp + fn == 0) {
      classes += many;
      continue;
    }
    sum += tp / (tp + (fp + fn) / 2);
    ++classes;
  }
  return metric == Metric::kMicroF1 ? hits / (hits + wrong / 2) : sum / classes;
}

double plain_auc(const std::vector<double>& scores, const std::vector<bool>& truth) {
  double won = 0, pairs = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    for (std::size_t j = 0; j < scores.size(); ++j) {
      if (!truth[i] || truth[j]) continue;
      ++pairs;
      won += scores[i] > scores[j] ? 1 : scores[i] == scores[j] ? 0.5 : 0;
    }
  }
  return won / pairs;
}

double plain_average_precision(const std::vector<double>& scores, const std::vector<bool>& truth) {
  std::set<double, std::greater<>> thresholds(scores.begin(), scores.end());
  double positives = 0, sum = 0, recall_before = 0;
  for (const bool t : truth) positives += t;
  for (const double threshold : thresholds) {
    double above = 0, hits = 0;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      above += scores[i] >= threshold;
      hits += scores[i] >= threshold && truth[i];
    }
    sum += (hits / positives - recall_before) * hits / above;
    recall_before = hits / positives;
  }
  return sum;
}

double plain_metric(const Plain& plain, Metric metric, Task task) {
  if (metric == Metric::kMicroF1 || metric == Metric::kMacroF1) {
    return plain_f1(plain, metric, task == Task::kMultiLabel);
  }
  double sum = 0, classes = 0;
  for (std::size_t c = 0; c < plain.scores.size(); ++c) {
    double positives = 0;
    for (const bool t : plain.ranked[c]) positives += t;
    if (positives == 0 || positives == static_cast<double>(plain.ranked[c].size())) continue;
    ++classes;
    sum += metric == Metric::kRocAuc ? plain_auc(plain.scores[c], plain.ranked[c])
                                     : plain_average_precision(plain.scores[c], plain.ranked[c]);
  }
  return sum / classes;
}

template <class T>
void check_against_plain(Task task, std::int64_t vertices, std::int64_t cols) {
  for (const auto& [name, metric] : kMetrics) {
    if (is_value_metric(metric)) continue;
    const bool ranks = metric == Metric::kRocAuc || metric == Metric::kAveragePrecision;
    if (!needs_logits(metric, task) || (ranks && task == Task::kSingle && cols != 2)) continue;
    test::MetricInputs<T> rows = random_rows<T>(task, vertices, cols, 16);
    const Scores scores = rows.compute(metric);
    INFO(name << " of task " << word_of(kTasks, task) << ", " << cols << " columns");
    const double found[] = {scores.train, scores.valid, scores.test};
    for (std::uint8_t split = 1; split <= 3; ++split) {
      INFO("split " << int{split});
      const double expected = plain_metric(plain_of(rows, split), metric, task);
      REQUIRE(std::isfinite(expected));
      CHECK(found[split - 1] == Approx(expected).epsilon(1e-12));
    }
    const Scores whole = random_rows<T>(task, vertices, cols, 1024).compute(metric);
    CHECK(whole.train == scores.train);
    CHECK(whole.test == scores.test);
  }
}

}  // namespace

TEST_CASE("metrics: a set stop ends the reading") {
  test::MetricInputs<float> rows = random_rows<float>(Task::kMultiLabel, 100, 5, 16);
  const std::atomic<bool> stop{true};
  for (const Metric metric : {Metric::kMicroF1, Metric::kRocAuc, Metric::kAveragePrecision}) {
    CHECK_FALSE(rows.compute({metric}, &stop));
  }
}

TEMPLATE_TEST_CASE("metrics: each is its plain definition", "", float, double) {
  check_against_plain<TestType>(Task::kSingle, 300, 2);
  check_against_plain<TestType>(Task::kSingle, 300, 5);
  check_against_plain<TestType>(Task::kSingle, 400, 40);  // two slices
  check_against_plain<TestType>(Task::kMultiLabel, 300, 3);
  check_against_plain<TestType>(Task::kMultiLabel, 300, 37);
  check_against_plain<TestType>(Task::kBinary, 300, 1);
}

TEST_CASE("metrics: several at once are each alone, in the order in which they are wanted") {
  test::MetricInputs<float> rows = random_rows<float>(Task::kMultiLabel, 300, 5, 16);
  const std::vector<Metric> metrics{Metric::kAveragePrecision, Metric::kMacroF1, Metric::kRocAuc,
                                    Metric::kMicroF1};
  const auto scores = rows.compute(metrics, nullptr).value();
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    CHECK(scores[i].valid == rows.compute(metrics[i]).valid);
  }
  // Families of metrics share what they read.
  const auto readings = [](const std::vector<Metric>& of) {
    return metric_readings(of, Task::kMultiLabel, 300, 5);
  };
  CHECK(readings(metrics) == readings({Metric::kMacroF1}) + readings({Metric::kRocAuc}));
  CHECK(readings({Metric::kAccuracy}) == 0);
}

TEST_CASE("metrics: scikit-learn's own example") {
  test::MetricInputs<double> rows(Task::kBinary, 4, 1);
  const double scores[] = {0.1, 0.4, 0.35, 0.8};
  for (std::int64_t v = 0; v < 4; ++v) {
    rows.logits.at(v, 0) = scores[v];
    rows.single.at(v, 0) = v >= 2 ? 1 : 0;
    rows.splits.at(v, 0) = 1;
  }
  CHECK(rows.compute(Metric::kRocAuc).train == 0.75);
  CHECK(rows.compute(Metric::kAveragePrecision).train == Approx(0.8333333333333333));
}

TEST_CASE("metrics: where one isn't defined it is NaN, and only there") {
  test::MetricInputs<float> rows(Task::kBinary, 12, 1);
  for (std::int64_t v = 0; v < 12; ++v) {
    rows.logits.at(v, 0) = static_cast<float>(v % 4) - 2;
    rows.splits.at(v, 0) = static_cast<std::uint8_t>(v < 6 ? 1 : 2);      // no test vertex
    rows.single.at(v, 0) = static_cast<std::int32_t>(v < 6 ? v % 2 : 1);  // one class in valid
  }
  for (const Metric metric : {Metric::kRocAuc, Metric::kAveragePrecision}) {
    const Scores scores = rows.compute(metric);
    CHECK(std::isfinite(scores.train));
    CHECK(std::isnan(scores.valid));
    CHECK(std::isnan(scores.test));
  }
  const Scores f1 = rows.compute(Metric::kMacroF1);
  CHECK(std::isfinite(f1.valid));
  CHECK(std::isnan(f1.test));
  // A score that is no number spoils its split; infinite ones are the largest and the smallest.
  rows.single.at(7, 0) = 0;
  CHECK(std::isfinite(rows.compute(Metric::kRocAuc).valid));
  rows.logits.at(7, 0) = -std::numeric_limits<float>::infinity();
  CHECK(rows.compute(Metric::kRocAuc).valid == 1);
  rows.logits.at(7, 0) = std::numeric_limits<float>::quiet_NaN();
  CHECK(std::isnan(rows.compute(Metric::kRocAuc).valid));
  CHECK(std::isnan(rows.compute(Metric::kAveragePrecision).valid));
  CHECK(std::isfinite(rows.compute(Metric::kRocAuc).train));
}

TEST_CASE("metrics: a class of one kind is left out of the mean, with none left it is NaN") {
  test::MetricInputs<float> rows(Task::kMultiLabel, 8, 2);
  for (std::int64_t v = 0; v < 8; ++v) {
    rows.splits.at(v, 0) = 1;
    rows.bits.at(v, 0) = v >= 4;
    rows.logits.at(v, 0) = static_cast<float>(v);  // ranked without a mistake
    rows.logits.at(v, 1) = 1;
  }
  CHECK(rows.compute(Metric::kRocAuc).train == 1);
  CHECK(rows.compute(Metric::kAveragePrecision).train == 1);
  for (std::int64_t v = 0; v < 8; ++v) rows.bits.at(v, 0) = 0;
  CHECK(std::isnan(rows.compute(Metric::kRocAuc).train));
}

TEST_CASE("metrics: the same to the last bit for any number of threads") {
  test::MetricInputs<float> rows = random_rows<float>(Task::kMultiLabel, 5000, 35, 64);
  for (const Metric metric : {Metric::kMacroF1, Metric::kRocAuc, Metric::kAveragePrecision}) {
    const Scores many = rows.compute(metric);
    const tbb::global_control one(tbb::global_control::max_allowed_parallelism, 1);
    const Scores alone = rows.compute(metric);
    CHECK(alone.train == many.train);
    CHECK(alone.valid == many.valid);
    CHECK(alone.test == many.test);
  }
}
