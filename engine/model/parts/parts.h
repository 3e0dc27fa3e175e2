// What layers and the stack around them are made of: parameters under their names, linear maps,
// norms, dropouts, the activation. They share one Model, and one numbering of dropouts.
#pragma once

#include <map>
#include <string>

#include "engine/model/parts/model.h"
#include "kernels/spec/row_kernels.h"

namespace ooc {

class ModelParts {
 public:
  // All of it outlives this but `mode` and `real`.
  ModelParts(const ModelOptions& options, const GraphFacts& facts, Mode mode, DType real);

  const ModelOptions& options() const { return options_; }
  const GraphFacts& facts() const { return facts_; }
  Model& model() { return model_; }
  TensorGraph& graph() { return model_.graph; }
  std::int64_t cols(TensorId x) const { return model_.graph.shape(x).cols; }

  // The same name a second time gives the same parameter: its shape has to be the same.
  TensorId parameter(const std::string& name, std::int64_t rows, std::int64_t cols,
                     const Initial& initial, bool trainable = true);

  TensorId linear(TensorId x, std::int64_t out, const std::string& name);  // X W
  TensorId affine(TensorId x, std::int64_t out, const std::string& name);  // X W + b
  TensorId batch_norm(TensorId x, const std::string& name);
  TensorId layer_norm(TensorId x, const std::string& name);
  TensorId activation(TensorId x);  // --activation
  // Whether gathers that say `with weights` are weighted.
  bool uses_weights() const;
  // Of the edges' numbers, or of the sums of their weights. The same factor gives the same tensor.
  TensorId degree_factor(DegreeFactor factor, bool weighted);
  // Once no layer asks for factors any more: sets Model::zero_factors.
  void count_zero_factors();
  // None in evaluation, or where the probability is 0; its number is taken all the same, so that a
  // mask depends on nothing but its place in the model.
  TensorId dropout(TensorId x, double probability);
  TensorId edge_dropout(TensorId edges, double probability, std::int64_t heads);

 private:
  const ModelOptions& options_;
  const GraphFacts& facts_;
  Mode mode_;
  Model model_;
  std::map<std::string, TensorId> parameters_;
  std::map<DegreeFactor, TensorId> weighted_factors_;
  std::uint32_t next_key_ = 1;
};

}  // namespace ooc
