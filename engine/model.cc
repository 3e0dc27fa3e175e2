#include "engine/model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "engine/edge_operators.h"
#include "storage/errors.h"

namespace ooc {
namespace {

constexpr double kNormEpsilon = 1e-5;

class ModelBuilder {
 public:
  ModelBuilder(const ModelOptions& options, const GraphFacts& facts, Mode mode, DType real)
      : options_(options), facts_(facts), mode_(mode), model_(real) {}

  Model build() {
    TensorGraph& graph = model_.graph;
    TensorId h = graph.input("features", facts_.feature_cols, graph.real());
    std::int64_t cols = facts_.feature_cols;
    h = dropout(h, options_.input_dropout);
    for (std::int64_t layer = 1; layer <= options_.layers; ++layer) {
      const bool last = layer == options_.layers && !options_.linear_head;
      const std::int64_t out = last ? facts_.classes : options_.hidden;
      const std::string name = fmt::format("layer{}", layer);
      if (last) model_.embedding = h;
      const TensorId input = h;
      // Batch norm takes a bias away again: its beta is the bias. One before it would only carry
      // rounding noise, which Adam turns into full steps.
      const bool biased = last || options_.norm != Norm::kBatch;
      h = convolution(h, cols, out, name, biased);
      if (options_.residual) h = add_linear(h, input, cols, out, name + ".residual");
      if (!last) {
        h = norm(h, out, name + ".norm");
        h = graph.apply("relu", {h}, {}, name + ".activation");
        h = dropout(h, options_.dropout);
      }
      cols = out;
    }
    if (options_.linear_head) {
      model_.embedding = h;
      h = linear(h, cols, facts_.classes, "head");
      h = graph.apply("bias", {h, parameter("head.bias", 1, facts_.classes, Initial::kZero)});
    }
    model_.logits = h;
    add_loss();
    return std::move(model_);
  }

 private:
  TensorId parameter(const std::string& name, std::int64_t rows, std::int64_t cols, Initial initial,
                     bool trainable = true) {
    const TensorId tensor = model_.graph.parameter(name, rows, cols, trainable);
    model_.parameters.push_back({name, tensor, rows, cols, initial, trainable});
    return tensor;
  }

  // X W, W Glorot-uniform.
  TensorId linear(TensorId x, std::int64_t in, std::int64_t out, const std::string& name) {
    const TensorId w = parameter(name + ".weight", in, out, Initial::kGlorotUniform);
    return model_.graph.apply("matmul", {x, w}, {}, name);
  }

  // D_in^-1/2 (A + I) D_out^-1/2 H W + b (Kipf and Welling 2017, eq. 2), transform first. The data
  // may hold self loops; the third factor makes them one.
  TensorId convolution(TensorId h, std::int64_t in, std::int64_t out, const std::string& name,
                       bool biased) {
    TensorGraph& graph = model_.graph;
    const TensorId in_factor = graph.input(kInFactor, 1, graph.real());
    const TensorId out_factor = graph.input(kOutFactor, 1, graph.real());
    const TensorId loop_factor = graph.input(kLoopFactor, 1, graph.real());
    const TensorId transformed = linear(h, in, out, name);
    const TensorId scaled =
        graph.apply("scale_rows", {transformed, out_factor}, {}, name + ".scaled");
    const TensorId neighbours = gather_sum(graph, graph.source(scaled), name + ".neighbours");
    const TensorId loop = graph.apply("scale_rows", {scaled, loop_factor});
    const TensorId sum = graph.apply("add", {neighbours, loop});
    const TensorId normalised = graph.apply("scale_rows", {sum, in_factor});
    if (!biased) return normalised;
    return graph.apply("bias", {normalised, parameter(name + ".bias", 1, out, Initial::kZero)}, {},
                       name + ".convolution");
  }

  TensorId add_linear(TensorId h, TensorId input, std::int64_t in, std::int64_t out,
                      const std::string& name) {
    return model_.graph.apply("add", {h, linear(input, in, out, name)});
  }

  TensorId norm(TensorId h, std::int64_t cols, const std::string& name) {
    if (options_.norm == Norm::kNone) return h;
    TensorGraph& graph = model_.graph;
    Attributes attributes;
    attributes.value = kNormEpsilon;
    attributes.count = static_cast<double>(facts_.vertices);
    const TensorId gamma = parameter(name + ".gamma", 1, cols, Initial::kOne);
    const TensorId beta = parameter(name + ".beta", 1, cols, Initial::kZero);
    if (options_.norm == Norm::kLayer) {
      return graph.apply("layer_norm", {h, gamma, beta}, attributes, name);
    }
    const TensorId mean = parameter(name + ".mean", 1, cols, Initial::kZero, false);
    const TensorId variance = parameter(name + ".variance", 1, cols, Initial::kOne, false);
    BatchStatistics statistics{-1, name + ".mean", name + ".variance"};
    TensorId out = -1;
    if (mode_ == Mode::kTrain) {
      statistics.sums = graph.apply("batch_norm_sums", {h}, {}, name + ".sums");
      out = graph.apply("batch_norm", {h, statistics.sums, gamma, beta}, attributes, name);
    } else {
      out = graph.apply("batch_norm_inference", {h, mean, variance, gamma, beta}, attributes, name);
    }
    model_.batch_statistics.push_back(statistics);
    return out;
  }

  // Numbered in the order of the model, so that a mask doesn't depend on anything else.
  TensorId dropout(TensorId h, double probability) {
    const std::uint32_t key = next_key_++;
    if (mode_ == Mode::kEvaluate || probability == 0) return h;
    Attributes attributes;
    attributes.value = probability;
    attributes.key = key;
    return model_.graph.apply("dropout", {h, model_.graph.input("ids", 1, DType::kI64)},
                              attributes);
  }

  void add_loss() {
    TensorGraph& graph = model_.graph;
    Attributes attributes;
    attributes.count = static_cast<double>(facts_.train_vertices);
    model_.loss = graph.apply("softmax_cross_entropy",
                              {model_.logits, graph.input("labels", 1, DType::kI32),
                               graph.input("splits", 1, DType::kU8)},
                              attributes, "loss");
  }

  const ModelOptions& options_;
  const GraphFacts& facts_;
  Mode mode_;
  Model model_;
  std::uint32_t next_key_ = 1;
};

void check_probability(const char* option, double value) {
  if (value >= 0 && value < 1) return;
  throw UsageError(fmt::format("wrong value for {}", option), fmt::format("{}", value),
                   "give a probability from 0 up to but not including 1");
}

void check_count(const char* option, std::int64_t value, std::int64_t most) {
  if (value >= 1 && value <= most) return;
  throw UsageError(fmt::format("wrong value for {}", option), fmt::format("{}", value),
                   fmt::format("give a whole number from 1 to {}", most));
}

}  // namespace

std::vector<std::string> model_names() { return {"gcn"}; }

void check_options(const ModelOptions& options) {
  const std::vector<std::string> names = model_names();
  if (std::find(names.begin(), names.end(), options.model) == names.end()) {
    throw UsageError("unknown model", options.model,
                     fmt::format("--model takes {}", fmt::join(names, ", ")));
  }
  check_count("--layers", options.layers, kMaxLayers);
  check_count("--hidden", options.hidden, kMaxHidden);
  check_probability("--dropout", options.dropout);
  check_probability("--input-dropout", options.input_dropout);
}

Model build_model(const ModelOptions& options, const GraphFacts& facts, Mode mode, DType real) {
  check_options(options);
  return ModelBuilder(options, facts, mode, real).build();
}

}  // namespace ooc
