#include "engine/graph_inputs.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "engine/model.h"
#include "sched/plan.h"

namespace ooc {

GraphInputs::GraphInputs(const Dataset& dataset, DType real, const std::set<std::string>& names) {
  for (const char* name : {"features", "labels", "splits", "ids"}) {
    const VertexTensorFile* file = dataset.tensor(name);
    if (file != nullptr) add(name, std::make_unique<MappedSource>(*file));
  }
  if (real == DType::kF64) {
    add_factors<double>(dataset, names);
  } else {
    add_factors<float>(dataset, names);
  }
}

void GraphInputs::add(const std::string& name, std::unique_ptr<BlockSource> source) {
  sources_[name] = source.get();
  owned_.push_back(std::move(source));
}

std::int64_t GraphInputs::memory_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& [name, source] : sources_) {
    const TensorLayout& layout = source->layout();
    if (!source->in_storage()) bytes += resident_bytes(layout, source->dtype());
  }
  return bytes;
}

namespace {

// The computed inputs of a vertex, from its row of the degrees file.
struct Factor {
  const char* name;
  double (*value)(const std::int32_t* degrees);
};

double inverse(std::int64_t count) { return count > 0 ? 1.0 / static_cast<double>(count) : 0; }

constexpr Factor kFactors[] = {
    {kInFactor, [](const std::int32_t* d) { return 1 / std::sqrt(d[kInDegree] + 1.0); }},
    {kOutFactor, [](const std::int32_t* d) { return 1 / std::sqrt(d[kOutDegree] + 1.0); }},
    {kLoopFactor, [](const std::int32_t* d) { return 1.0 - d[kSelfLoops]; }},
    {kInverseInDegree,
     [](const std::int32_t* d) { return inverse(std::int64_t{d[kInDegree]} + d[kSelfLoops]); }},
    {kInverseInDegreeWithLoops,
     [](const std::int32_t* d) {
       return inverse(std::int64_t{d[kInDegree]} + std::max(d[kSelfLoops], 1));
     }},
};

}  // namespace

std::set<std::string> computed_inputs() {
  std::set<std::string> names;
  for (const Factor& factor : kFactors) names.insert(factor.name);
  names.insert(kBinaryLabels);
  return names;
}

void GraphInputs::add_binary_labels(const Dataset& dataset) {
  const TensorLayout layout{dataset.vertices(), 1, dataset.manifest().edges.block_rows};
  auto bits = std::make_unique<MemorySource<std::uint8_t>>(layout);
  std::vector<std::int32_t> labels(static_cast<std::size_t>(layout.block_rows));
  for (std::int64_t begin = 0; begin < layout.rows; begin += layout.block_rows) {
    const std::int64_t rows = std::min(layout.block_rows, layout.rows - begin);
    dataset.tensor("labels")->read_rows(begin, rows, labels.data());
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int32_t label = labels[static_cast<std::size_t>(i)];
      bits->at(begin + i, 0) = label < 0 ? kUnlabelled : static_cast<std::uint8_t>(label);
    }
  }
  add(kBinaryLabels, std::move(bits));
}

template <class T>
void GraphInputs::add_factors(const Dataset& dataset, const std::set<std::string>& names) {
  const TensorLayout layout{dataset.vertices(), 1, dataset.manifest().edges.block_rows};
  std::vector<const Factor*> wanted;
  std::vector<std::unique_ptr<MemorySource<T>>> factors;
  for (const Factor& factor : kFactors) {
    if (!names.contains(factor.name)) continue;
    wanted.push_back(&factor);
    factors.push_back(std::make_unique<MemorySource<T>>(layout));
  }
  if (wanted.empty()) return;
  std::vector<std::int32_t> degrees(static_cast<std::size_t>(layout.block_rows * kDegreeColumns));
  for (std::int64_t begin = 0; begin < layout.rows; begin += layout.block_rows) {
    const std::int64_t rows = std::min(layout.block_rows, layout.rows - begin);
    dataset.tensor("degrees")->read_rows(begin, rows, degrees.data());
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int32_t* row = degrees.data() + i * kDegreeColumns;
      for (std::size_t f = 0; f < factors.size(); ++f) {
        factors[f]->at(begin + i, 0) = static_cast<T>(wanted[f]->value(row));
      }
    }
  }
  for (std::size_t f = 0; f < factors.size(); ++f) {
    add(wanted[f]->name, std::move(factors[f]));
  }
}

}  // namespace ooc
