#include "engine/model/parts/parts.h"

#include "engine/graph/edge_operators.h"
#include "engine/graph/row_operators.h"
#include "engine/model/parts/words.h"
#include "storage/base/errors.h"

namespace ooc {
namespace {

constexpr double kNormEpsilon = 1e-5;

}  // namespace

ModelParts::ModelParts(const ModelOptions& options, const GraphFacts& facts, Mode mode, DType real)
    : options_(options), facts_(facts), mode_(mode), model_(real) {}

TensorId ModelParts::parameter(const std::string& name, std::int64_t rows, std::int64_t cols,
                               const Initial& initial, bool trainable) {
  const auto known = parameters_.find(name);
  if (known != parameters_.end()) {
    const TensorShape& shape = graph().shape(known->second);
    OOC_CHECK(shape.rows == rows && shape.cols == cols);
    return known->second;
  }
  const TensorId tensor = graph().parameter(name, rows, cols, trainable);
  model_.parameters.push_back({name, tensor, rows, cols, initial, trainable});
  parameters_[name] = tensor;
  return tensor;
}

TensorId ModelParts::linear(TensorId x, std::int64_t out, const std::string& name) {
  const TensorId w = parameter(name + ".weight", cols(x), out, kGlorotUniform);
  return graph().apply("matmul", {x, w}, {}, name);
}

TensorId ModelParts::affine(TensorId x, std::int64_t out, const std::string& name) {
  const TensorId product = linear(x, out, name);
  return graph().apply("bias", {product, parameter(name + ".bias", 1, out, kZero)});
}

TensorId ModelParts::batch_norm(TensorId x, const std::string& name) {
  Attributes attributes;
  attributes.value = kNormEpsilon;
  attributes.count = static_cast<double>(facts_.vertices);
  const TensorId gamma = parameter(name + ".gamma", 1, cols(x), kOne);
  const TensorId beta = parameter(name + ".beta", 1, cols(x), kZero);
  const TensorId mean = parameter(name + ".mean", 1, cols(x), kZero, false);
  const TensorId variance = parameter(name + ".variance", 1, cols(x), kOne, false);
  BatchStatistics statistics{-1, name + ".mean", name + ".variance"};
  TensorId out = -1;
  if (mode_ == Mode::kTrain) {
    statistics.sums = graph().apply("batch_norm_sums", {x}, {}, name + ".sums");
    out = graph().apply("batch_norm", {x, statistics.sums, gamma, beta}, attributes, name);
  } else {
    out = graph().apply("batch_norm_inference", {x, mean, variance, gamma, beta}, attributes, name);
  }
  model_.batch_statistics.push_back(statistics);
  return out;
}

TensorId ModelParts::layer_norm(TensorId x, const std::string& name) {
  Attributes attributes;
  attributes.value = kNormEpsilon;
  const TensorId gamma = parameter(name + ".gamma", 1, cols(x), kOne);
  const TensorId beta = parameter(name + ".beta", 1, cols(x), kZero);
  return graph().apply("layer_norm", {x, gamma, beta}, attributes, name);
}

TensorId ModelParts::activation(TensorId x) {
  return graph().apply(word_of(kActivations, options_.activation), {x});
}

bool ModelParts::uses_weights() const {
  return options_.edge_weights == EdgeWeights::kUse ||
         (options_.edge_weights == EdgeWeights::kAuto && facts_.edge_weights);
}

TensorId ModelParts::degree_factor(DegreeFactor factor, bool weighted) {
  if (!weighted) return ooc::degree_factor(graph(), factor);
  const auto known = weighted_factors_.find(factor);
  if (known != weighted_factors_.end()) return known->second;
  return weighted_factors_[factor] = weighted_degree_factor(graph(), factor);
}

void ModelParts::count_zero_factors() {
  TensorId product = -1;
  for (const auto& [factor, tensor] : weighted_factors_) {
    if (factor != DegreeFactor::kIn && factor != DegreeFactor::kOut) continue;
    product = product < 0 ? tensor : graph().apply("mul", {product, tensor});
  }
  if (product >= 0) model_.zero_factors = graph().apply("count_zeros", {product});
}

TensorId ModelParts::dropout(TensorId x, double probability) {
  Attributes attributes;
  attributes.value = probability;
  attributes.key = next_key_++;
  if (mode_ == Mode::kEvaluate || probability == 0) return x;
  return graph().apply("dropout", {x, graph().input("ids", 1, DType::kI64)}, attributes);
}

TensorId ModelParts::edge_dropout(TensorId edges, double probability, std::int64_t heads) {
  Attributes attributes;
  attributes.value = probability;
  attributes.key = next_key_++;
  attributes.heads = heads;
  if (mode_ == Mode::kEvaluate || probability == 0) return edges;
  const TensorId key = edge_key(graph(), graph().shape(edges).loops);
  return graph().apply("edge_dropout", {edges, key}, attributes);
}

}  // namespace ooc
