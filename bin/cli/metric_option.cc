#include "bin/cli/metric_option.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "engine/model/parts/words.h"
#include "storage/base/errors.h"

namespace ooc::cli {
namespace {

// Other words for the same, in other libraries.
constexpr Words<Metric, 13> kSynonyms{{{"acc", Metric::kAccuracy},
                                       {"f1_micro", Metric::kMicroF1},
                                       {"f1_macro", Metric::kMacroF1},
                                       {"auc", Metric::kRocAuc},
                                       {"roc_auc", Metric::kRocAuc},
                                       {"auroc", Metric::kRocAuc},
                                       {"prauc", Metric::kAveragePrecision},
                                       {"pr_auc", Metric::kAveragePrecision},
                                       {"average_precision", Metric::kAveragePrecision},
                                       {"root_mean_squared_error", Metric::kRmse},
                                       {"mean_absolute_error", Metric::kMae},
                                       {"r2_score", Metric::kR2},
                                       {"rsquared", Metric::kR2}}};

std::optional<Metric> metric_of(const std::string& word) {
  for (const auto& [name, metric] : kMetrics) {
    if (is_word(word, name)) return metric;
  }
  for (const auto& [name, metric] : kSynonyms) {
    if (is_word(word, name)) return metric;
  }
  return std::nullopt;
}

// UsageError for one that is unknown, there twice or missing.
std::vector<Metric> parse_metrics(const std::string& list, const std::string& takes) {
  std::vector<Metric> metrics;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string word = list.substr(begin, end - begin);
    const std::optional<Metric> metric = metric_of(word);
    if (!metric) {
      throw UsageError(fmt::format("--metric cannot be '{}'", word), list, "it takes " + takes);
    }
    if (std::find(metrics.begin(), metrics.end(), *metric) != metrics.end()) {
      throw UsageError(fmt::format("--metric has {} twice", word_of(kMetrics, *metric)), list,
                       "name each once");
    }
    metrics.push_back(*metric);
    begin = end + 1;
  }
  return metrics;
}

}  // namespace

void add_metric_option(Command& command, std::vector<Metric>& metrics,
                       const std::string& description) {
  std::string words;
  for (const auto& [name, metric] : kMetrics)
    words += (words.empty() ? "" : ", ") + std::string(name);
  const std::string takes = fmt::format("some of {}, with commas between", words);
  command.parsed("--metric", "LIST", takes, fmt::format("{}. Of {}", description, words),
                 [&metrics, takes](const std::string& list) {
                   metrics = parse_metrics(list, takes);
                   return true;
                 });
}

}  // namespace ooc::cli
