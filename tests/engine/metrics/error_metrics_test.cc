#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "tests/engine/metrics/metric_rows.h"

using namespace ooc;
using test::kNan;
using test::MetricInputs;

namespace {

// Values about `offset`, predictions near them; entries without a label; the last target has none.
MetricInputs<float> random_values(std::int64_t targets, float offset, std::int64_t block_rows) {
  MetricInputs<float> rows(Task::kRegression, 500, targets, block_rows);
  std::mt19937_64 random(11);
  std::normal_distribution<float> normal;
  for (std::int64_t v = 0; v < rows.rows; ++v) {
    rows.splits.at(v, 0) = static_cast<std::uint8_t>(random() % 4);
    for (std::int64_t c = 0; c < targets; ++c) {
      const bool labelled = random() % 4 != 0 && (targets == 1 || c < targets - 1);
      const float value = offset + normal(random);
      rows.logits.at(v, c) = value + normal(random) / 2;
      rows.values.at(v, c) = labelled ? value : static_cast<float>(kNan);
    }
  }
  return rows;
}

double plain_error(MetricInputs<float>& rows, std::uint8_t split, Metric metric) {
  double sum = 0, targets = 0;
  for (std::int64_t c = 0; c < rows.cols; ++c) {
    long double count = 0, mean = 0, squares = 0, sizes = 0, spread = 0;
    const auto each = [&](const auto& visit) {
      for (std::int64_t v = 0; v < rows.rows; ++v) {
        const float label = rows.values.at(v, c);
        if (rows.splits.at(v, 0) == split && !std::isnan(label)) visit(label, rows.logits.at(v, c));
      }
    };
    each([&](long double label, long double) { mean += label, ++count; });
    if (count == 0) continue;
    mean /= count;
    each([&](long double label, long double value) {
      squares += (label - value) * (label - value);
      sizes += std::abs(label - value);
      spread += (label - mean) * (label - mean);
    });
    sum += static_cast<double>(metric == Metric::kRmse  ? std::sqrt(squares / count)
                               : metric == Metric::kMae ? sizes / count
                                                        : 1 - squares / spread);
    ++targets;
  }
  return sum / targets;
}

}  // namespace

TEST_CASE("metrics: errors are those of two passes in long double, far from 0 too") {
  const std::vector<Metric> metrics{Metric::kR2, Metric::kRmse, Metric::kMae};
  for (const std::int64_t targets : {1, 3, 37}) {
    for (const float offset : {0.0f, 1e4f}) {
      INFO(targets << " targets about " << offset);
      MetricInputs<float> rows = random_values(targets, offset, 16);
      const auto scores = rows.compute(metrics, nullptr).value();
      const auto whole = random_values(targets, offset, 1024).compute(metrics, nullptr).value();
      for (std::size_t i = 0; i < metrics.size(); ++i) {
        const double found[] = {scores[i].train, scores[i].valid, scores[i].test};
        for (std::uint8_t split = 1; split <= 3; ++split) {
          const double expected = plain_error(rows, split, metrics[i]);
          REQUIRE(std::isfinite(expected));
          CHECK(found[split - 1] == Approx(expected).epsilon(1e-11));
        }
        CHECK((whole[i].train == scores[i].train && whole[i].test == scores[i].test));
      }
    }
  }
}

TEST_CASE("metrics: r2 of labels that are all equal, of one label and of none") {
  MetricInputs<float> rows(Task::kRegression, 6, 2);
  for (std::int64_t v = 0; v < 6; ++v) {
    rows.splits.at(v, 0) = static_cast<std::uint8_t>(v < 3 ? 1 : v < 4 ? 2 : 3);
    rows.values.at(v, 0) = rows.logits.at(v, 0) = 0.1f;
    rows.values.at(v, 1) = static_cast<float>(kNan);  // a target without labels is left out
    rows.logits.at(v, 1) = 7;
  }
  rows.logits.at(5, 0) = 0.3f;
  CHECK(rows.compute(Metric::kR2).train == 1);
  CHECK(std::isnan(rows.compute(Metric::kR2).valid));
  CHECK(rows.compute(Metric::kR2).test == 0);
  CHECK(rows.compute(Metric::kRmse).valid == 0);
  CHECK(rows.compute(Metric::kMae).test == Approx(0.1));
  rows.values.at(3, 0) = static_cast<float>(kNan);
  CHECK(std::isnan(rows.compute(Metric::kRmse).valid));
  rows.logits.at(0, 0) = static_cast<float>(kNan);
  for (const Metric metric : {Metric::kRmse, Metric::kMae, Metric::kR2}) {
    CHECK(std::isnan(rows.compute(metric).train));
  }
}
