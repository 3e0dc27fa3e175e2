// A model in one mode, ready to run on a dataset: graph, gradients, stages, plan, executor.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/gradients.h"
#include "engine/graph_inputs.h"
#include "engine/metrics.h"
#include "engine/model.h"
#include "engine/model_rewrites.h"
#include "engine/parameters.h"
#include "engine/stages.h"
#include "sched/executor.h"
#include "sched/plan.h"

namespace ooc {

// What the program computes.
struct Wanted {
  bool loss = true;        // the loss sums
  bool gradients = false;  // of every trainable parameter
  bool logits = false;
  bool embedding = false;
};

// The loss and the accuracy of a split: means over its labelled vertices, NaN where there are none.
// A weighted loss is divided by the sum of the weights.
struct SplitLoss {
  double loss = 0;
  double accuracy = 0;
};

GraphFacts facts_of(const Dataset& dataset);
GraphCounts counts_of(const Dataset& dataset);

// How a model becomes passes.
struct ProgramOptions {
  Rewrites rewrites = {};
  std::int64_t span_group = 0;  // PlanOptions::span_group
};

// The plan is made first, so that several programs can share an arena as large as the largest
// needs.
class ModelProgram {
 public:
  ModelProgram(const ModelOptions& options, const GraphFacts& facts, const GraphCounts& counts,
               Mode mode, Wanted wanted, DType real, const ProgramOptions& program_options = {});
  // A model that was built by hand; `name` is the program's, for reports.
  ModelProgram(Model model, const GraphCounts& counts, const std::string& name, Wanted wanted,
               const ProgramOptions& program_options = {});

  const Model& model() const { return model_; }
  const Program& program() const { return staged_.program; }
  const Plan& plan() const { return plan_; }

  // What bind() expects among the inputs besides the dataset's.
  const Precomputed& precomputed() const { return precomputed_; }
  // Binds it to data; all of it outlives the program.
  void bind(Backend& backend, const Dataset& dataset, const GraphInputs& inputs, Arena arena,
            ParameterStore& parameters);

  // As Executor::run.
  bool run(const RunState& state, const std::atomic<bool>* stop) {
    return executor_->run(state, stop);
  }
  // The last run's, of train, valid and test.
  std::array<SplitLoss, 3> losses() const;
  // The last run's gradient of a parameter (device memory), until the next run. Where several
  // operations read the parameter it is summed here, in an order that the graph fixes.
  const void* gradient(const ModelParameter& parameter);
  // Device memory that bind() takes for such sums.
  std::int64_t sum_bytes() const;
  std::vector<double> read_reduction(TensorId tensor) const;  // of an fp64 one, on the host
  // A chunk of a vertex tensor that was wanted (the logits, the embedding).
  const void* chunk(TensorId tensor, std::int64_t block, std::int64_t slice) const;
  TensorLayout layout(TensorId tensor) const;
  RunCounters take_counters() { return executor_->take_counters(); }

 private:
  void merge_common_gradients();
  std::size_t summed_bytes(const ModelParameter& parameter) const;

  Backend* backend_ = nullptr;
  Precomputed precomputed_;
  Model model_;
  Gradients gradients_;
  StagedGraph staged_;
  Plan plan_;
  std::unique_ptr<Executor> executor_;
  std::map<TensorId, std::unique_ptr<DeviceBuffer>> sums_;  // of parameters read more than once
};

// The logits or the embedding of a program's last run, where they were wanted. The program outlives
// it.
class ProgramOutput final : public BlockSource {
 public:
  ProgramOutput(const ModelProgram& program, TensorId tensor)
      : program_(program), tensor_(tensor), layout_(program.layout(tensor)) {}
  DType dtype() const override { return program_.model().graph.real(); }
  const TensorLayout& layout() const override { return layout_; }
  bool in_storage() const override { return false; }
  const void* chunk(std::int64_t block, std::int64_t slice) const override {
    return program_.chunk(tensor_, block, slice);
  }

 private:
  const ModelProgram& program_;
  TensorId tensor_;
  TensorLayout layout_;
};

// The metric of the program's last run; its logits are wanted where needs_logits().
MetricResult run_scores(const ModelProgram& program, const GraphInputs& inputs, Metric metric,
                        Task task);

}  // namespace ooc
