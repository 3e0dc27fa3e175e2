// Batches that are sampled anew in each epoch, made ahead of what they are needed for.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/batches/batch_plan.h"
#include "engine/batches/seeds.h"
#include "engine/minibatch/batch_source.h"
#include "engine/minibatch/exact_evaluation.h"
#include "engine/train/graph_inputs.h"

namespace ooc {

class SampledBatches final : public BatchSource {
 public:
  struct On {
    Backend& backend;
    BlockIo& io;
    FileSystem& files;
    const Dataset& dataset;
    std::function<void(double share)> on_wait = {};  // as BatchLoaderOptions'
  };

  // `exact`: the plan of evaluations on the whole graph; null: they sample. All of it outlives
  // this.
  SampledBatches(const On& on, const BatchPrograms& programs, BatchPlan plan, const Plan* exact);

  std::int64_t batches() const override { return plan_.batches(); }
  bool judges_valid() const override { return on_.dataset.manifest().split_counts[1] > 0; }
  bool begin_training(std::int64_t epoch, std::int64_t first,
                      const std::atomic<bool>* stop) override;
  bool begin_evaluation(std::int64_t epoch, const std::atomic<bool>* stop) override;
  bool next(const std::atomic<bool>* stop) override;
  const LoadedBatch& batch() const override { return loader().batch(); }
  std::int64_t done() const override { return loader().done(); }
  LoadedWork take_work() override;
  void release() override;

  nlohmann::ordered_json plan_json() const override;
  std::string plan_text() const override;
  EpochForecast forecast() const override;

 private:
  const RunConfig& config() const { return plan_.config; }
  BatchLoader& loader() { return evaluates_ ? *evaluation_ : *training_; }
  const BatchLoader& loader() const { return evaluates_ ? *evaluation_ : *training_; }
  bool prepare(const std::atomic<bool>* stop);
  bool keep_of_graph(const std::atomic<bool>* stop);
  void announce();
  const SeedBatches& training_seeds(std::int64_t epoch);
  SeedBatches evaluation_seeds(std::int64_t epoch) const;
  const BatchEpochForecast& epoch_forecast() const;

  On on_;
  const BatchPrograms& programs_;
  BatchPlan plan_;
  const Plan* exact_;
  mutable std::optional<BatchEpochForecast> forecast_;  // once it was asked for
  GraphInputs inputs_;
  std::shared_ptr<const SampledVertices> vertices_;
  std::vector<std::uint32_t> train_, judged_;  // seeds
  SeedBatches seeds_;                          // of an epoch
  std::int64_t seeds_epoch_ = 0;
  std::optional<BatchLoader> training_, evaluation_;
  bool evaluates_ = false;  // of the epoch at hand, what was begun
  std::int64_t epoch_ = 0;
  bool is_announced_ = false;
};

}  // namespace ooc
