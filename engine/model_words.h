// The words of the model options, as the command line, config.toml and programs say them.
#pragma once

#include <array>
#include <string>
#include <utility>

#include "engine/model.h"

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

template <class T, std::size_t n>
std::string word_of(const Words<T, n>& words, T value) {
  for (const auto& [word, meaning] : words) {
    if (meaning == value) return word;
  }
  return {};
}

}  // namespace ooc
