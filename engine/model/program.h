// A model in one mode as a program: graph, rewrites, gradients, stages. What it computes depends on
// the model and a graph's counts, never on a budget.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/graph/gradients.h"
#include "engine/lower/stages.h"
#include "engine/model/parts/model.h"
#include "engine/model/rewrites.h"
#include "sched/plan/plan.h"
#include "storage/dataset/dataset.h"

namespace ooc {

// What the program computes.
struct Wanted {
  bool loss = true;        // the loss sums
  bool gradients = false;  // of every trainable parameter
  bool logits = false;
  bool layers = false;        // Model::layers, those that are there
  bool zero_factors = false;  // where the model counts them
};

// What of a model's program is decided beside the model.
struct ProgramOptions {
  Rewrites rewrites = {};
  Recompute recompute = Recompute::kCheap;
};

GraphFacts facts_of(const Manifest& manifest);
inline GraphFacts facts_of(const Dataset& dataset) { return facts_of(dataset.manifest()); }
// Of several `devices` also which in-edges are whose.
GraphCounts counts_of(const Dataset& dataset, std::int64_t devices = 1);

// A model whose rewrites are made, and what they take out of it.
struct RewrittenModel {
  Model model;
  Precomputed precomputed;
};

class ModelProgram {
 public:
  ModelProgram(const ModelOptions& options, const GraphFacts& facts, Mode mode, Wanted wanted,
               DType real, const ProgramOptions& how = {});
  // A model that was built by hand; `name` is the program's, for reports.
  ModelProgram(Model model, const std::string& name, Wanted wanted, const ProgramOptions& how = {});
  // Of `how` what comes after the rewrites of a model.
  ModelProgram(RewrittenModel model, const std::string& name, Wanted wanted,
               const ProgramOptions& how = {});
  // The loss and the gradients of one, and what is `wanted` of the other, evaluated with the same
  // parameters: what both do is done once. Bits of either are those of its own program.
  ModelProgram(Model training, Model evaluation, Wanted wanted, const ProgramOptions& how = {});

  const Model& model() const { return model_; }
  const Program& program() const { return staged_.program; }
  DType real() const { return model_.graph.real(); }
  // The value of a tensor of the model's graph; -1: nothing needs it.
  ValueId value(TensorId tensor) const { return staged_.value(tensor); }
  // What it reads besides the dataset.
  const std::vector<Precomputed>& precomputed() const { return precomputed_; }
  // Of the model without dropout, if it computes that.
  Evaluated evaluated() const;

  // The reductions whose sum is a parameter's gradient, one for each operation that reads it, in
  // the order in which they are added. Empty: none is computed.
  std::vector<ValueId> gradient_parts(const ModelParameter& parameter) const;
  // Of the sums of those that have more than one.
  std::int64_t sum_bytes() const;

 private:
  void merge_common_operators();
  std::vector<TensorId> gradient_roots() const;
  void make_stages_of(const std::string& name, std::vector<TensorId> roots,
                      const std::vector<TensorId>& beside, const ProgramOptions& how);

  std::vector<Precomputed> precomputed_;
  Model model_;
  Gradients gradients_;
  StagedGraph staged_;
};

}  // namespace ooc
