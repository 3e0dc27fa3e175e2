// The words of a model's options, as the command line, config.toml and programs say them.
#pragma once

#include <array>
#include <string>
#include <utility>

#include "engine/model/parts/model.h"

namespace ooc {

template <class T, std::size_t n>
using Words = std::array<std::pair<const char*, T>, n>;

inline constexpr Words<Norm, 3> kNorms{
    {{"none", Norm::kNone}, {"batch", Norm::kBatch}, {"layer", Norm::kLayer}}};
inline constexpr Words<Jumping, 4> kJumpings{{{"none", Jumping::kNone},
                                              {"sum", Jumping::kSum},
                                              {"cat", Jumping::kCat},
                                              {"max", Jumping::kMax}}};
inline constexpr Words<Activation, 3> kActivations{
    {{"relu", Activation::kRelu}, {"elu", Activation::kElu}, {"gelu", Activation::kGelu}}};
inline constexpr Words<Aggregation, 3> kAggregations{
    {{"mean", Aggregation::kMean}, {"max", Aggregation::kMax}, {"sum", Aggregation::kSum}}};

inline constexpr Words<EdgeWeights, 3> kEdgeWeightUses{
    {{"auto", EdgeWeights::kAuto}, {"use", EdgeWeights::kUse}, {"ignore", EdgeWeights::kIgnore}}};

inline constexpr Words<Task, 4> kTasks{{{"single", Task::kSingle},
                                        {"multi-label", Task::kMultiLabel},
                                        {"binary", Task::kBinary},
                                        {"regression", Task::kRegression}}};
inline constexpr Words<Loss, 4> kLosses{{{"cross-entropy", Loss::kCrossEntropy},
                                         {"mse", Loss::kSquared},
                                         {"mae", Loss::kAbsolute},
                                         {"huber", Loss::kHuber}}};
inline constexpr Words<Metric, 8> kMetrics{{{"accuracy", Metric::kAccuracy},
                                            {"micro_f1", Metric::kMicroF1},
                                            {"macro_f1", Metric::kMacroF1},
                                            {"rocauc", Metric::kRocAuc},
                                            {"ap", Metric::kAveragePrecision},
                                            {"rmse", Metric::kRmse},
                                            {"mae", Metric::kMae},
                                            {"r2", Metric::kR2}}};

template <class T, std::size_t n>
std::string word_of(const Words<T, n>& words, T value) {
  for (const auto& [word, meaning] : words) {
    if (meaning == value) return word;
  }
  return {};
}

}  // namespace ooc
