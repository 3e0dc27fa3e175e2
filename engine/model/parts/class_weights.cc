#include "engine/model/parts/class_weights.h"

#include <fast_float/fast_float.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "engine/model/parts/words.h"
#include "storage/base/closest.h"
#include "storage/base/errors.h"

namespace ooc {
namespace {

constexpr double kLeastWeight = 1e-30, kMostWeight = 1e30;

// Calls visit(row of labels) for the training vertices.
template <class T, class Visit>
void for_each_training_row(const Dataset& dataset, Visit&& visit) {
  constexpr std::int64_t kBatchElements = 1 << 20;
  const std::int64_t cols = dataset.tensor("labels")->layout().cols;
  const std::int64_t batch = std::max<std::int64_t>(1, kBatchElements / cols);
  std::vector<T> labels(static_cast<std::size_t>(batch * cols));
  std::vector<std::uint8_t> splits(static_cast<std::size_t>(batch));
  for (std::int64_t begin = 0; begin < dataset.vertices(); begin += batch) {
    const std::int64_t rows = std::min(batch, dataset.vertices() - begin);
    dataset.tensor("labels")->read_rows(begin, rows, labels.data());
    dataset.tensor("splits")->read_rows(begin, rows, splits.data());
    for (std::int64_t i = 0; i < rows; ++i) {
      if (splits[static_cast<std::size_t>(i)] != static_cast<std::uint8_t>(Split::kTrain)) continue;
      visit(labels.data() + i * cols);
    }
  }
}

using LabelCount = std::array<std::int64_t, 2>;

std::vector<LabelCount> count_classes(const Dataset& dataset) {
  std::vector<LabelCount> counts(static_cast<std::size_t>(dataset.manifest().classes));
  std::int64_t labels = 0;
  for_each_training_row<std::int32_t>(dataset, [&](const std::int32_t* label) {
    if (*label < 0) return;
    ++labels;
    ++counts[static_cast<std::size_t>(*label)][1];
  });
  for (LabelCount& count : counts) count[0] = labels - count[1];
  return counts;
}

std::vector<LabelCount> count_columns(const Dataset& dataset) {
  std::vector<LabelCount> counts(static_cast<std::size_t>(dataset.manifest().classes));
  for_each_training_row<std::uint8_t>(dataset, [&](const std::uint8_t* bits) {
    for (std::size_t c = 0; c < counts.size(); ++c) {
      if (bits[c] != kUnlabelled) ++counts[c][bits[c]];
    }
  });
  return counts;
}

std::vector<double> of_classes(std::span<const LabelCount> counts, const ClassWeights& weights,
                               const std::string& where) {
  std::vector<double> result = weights.given;
  if (weights.kind == ClassWeights::Kind::kBalanced) {
    for (const LabelCount& count : counts) {
      result.push_back(count[1] > 0 ? 1 / static_cast<double>(count[1]) : 0);
    }
  }
  double vertices = 0, sum = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    vertices += static_cast<double>(counts[i][1]);
    sum += result[i] * static_cast<double>(counts[i][1]);
  }
  if (!(sum > 0)) {
    throw UsageError("--class-weights gives every training vertex the weight 0", where,
                     "give a class that occurs among them a larger weight");
  }
  for (double& weight : result) weight *= vertices / sum;
  return result;
}

std::vector<double> of_ones(std::span<const LabelCount> counts) {
  std::vector<double> result;
  for (const auto& [zeros, ones] : counts) {
    const bool both = zeros > 0 && ones > 0;
    result.push_back(both ? static_cast<double>(zeros) / static_cast<double>(ones) : 1);
  }
  return result;
}

}  // namespace

std::string to_text(const ClassWeights& weights) {
  if (weights.kind == ClassWeights::Kind::kGiven)
    return fmt::format("{}", fmt::join(weights.given, ","));
  return weights.weigh() ? "balanced" : "none";
}

std::optional<ClassWeights> parse_class_weights(const std::string& text) {
  if (is_word(text, "none")) return ClassWeights{};
  if (is_word(text, "balanced")) return kBalancedWeights;
  ClassWeights weights{ClassWeights::Kind::kGiven, {}};
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    double weight = 0;
    const auto [stop, status] = fast_float::from_chars(at, end, weight);
    // 0, or what fp32 holds, with room for sums.
    const bool possible = weight == 0 || (weight >= kLeastWeight && weight <= kMostWeight);
    if (status != std::errc() || !possible) return std::nullopt;
    weights.given.push_back(weight);
    if (stop == end) return weights;
    if (*stop != ',') return std::nullopt;
    at = stop + 1;
  }
}

void check_class_weights(const ClassWeights& weights, Task task, std::int64_t classes) {
  if (!weights.weigh()) return;
  if (task == Task::kRegression) {
    throw UsageError("--class-weights does not fit --task regression", "values have no classes",
                     "leave it out");
  }
  const std::int64_t needed = logit_cols(task, classes);
  const auto given = static_cast<std::int64_t>(weights.given.size());
  if (weights.kind != ClassWeights::Kind::kGiven || given == needed) return;
  throw UsageError(
      fmt::format("{} {} of classes, {} needed", given, given == 1 ? "weight" : "weights",
                  needed == 1 ? "1 is" : fmt::format("{} are", needed)),
      fmt::format("--task {} with {} classes", word_of(kTasks, task), classes),
      task == Task::kBinary ? "give the weight of class 1 alone" : "give one a class");
}

std::vector<double> class_weights_of(std::span<const LabelCount> labels,
                                     const ClassWeights& weights, Task task,
                                     const std::string& where) {
  if (task == Task::kSingle) return of_classes(labels, weights, where);
  if (weights.kind == ClassWeights::Kind::kGiven) return weights.given;
  return of_ones(task == Task::kBinary ? labels.subspan(1, 1) : labels);
}

std::vector<double> class_weights_of(const Dataset& dataset, const ClassWeights& weights,
                                     Task task) {
  const bool columns = task == Task::kMultiLabel;
  return class_weights_of(columns ? count_columns(dataset) : count_classes(dataset), weights, task,
                          dataset.path());
}

}  // namespace ooc
