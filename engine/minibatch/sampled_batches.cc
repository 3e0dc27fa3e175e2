#include "engine/minibatch/sampled_batches.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "engine/batches/computed_inputs.h"

namespace ooc {

SampledBatches::SampledBatches(const On& on, const BatchPrograms& programs, BatchPlan plan,
                               const Plan* exact)
    : on_(on),
      programs_(programs),
      plan_(std::move(plan)),
      exact_(exact),
      inputs_(on.io, on.dataset) {}

bool SampledBatches::prepare(const std::atomic<bool>* stop) {
  if (training_) return true;
  if (!vertices_ && !keep_of_graph(stop)) return false;
  const auto open = [&](std::optional<BatchLoader>& loader, BatchLoaderOptions options,
                        std::shared_ptr<HotRows> hot) {
    options.vertices = vertices_;
    options.hot = std::move(hot);
    options.on_wait = on_.on_wait;
    loader.emplace(on_.io, on_.files, on_.dataset, inputs_, std::move(options));
  };
  open(training_, plan_.training, nullptr);
  open(evaluation_, plan_.evaluation, training_->hot_rows());
  return true;
}

bool SampledBatches::keep_of_graph(const std::atomic<bool>* stop) {
  const ComputeOnce with{on_.backend, on_.io, on_.dataset, plan_.budget, plan_.training.scratch};
  if (!compute_inputs(programs_.precompute, with, inputs_, stop)) return false;
  vertices_ = std::make_shared<const SampledVertices>(on_.dataset);
  train_ = vertices_of(on_.dataset, Split::kTrain, vertices_->names);
  judged_.clear();
  for (const Split split : {Split::kValid, Split::kTest}) {
    std::vector<std::uint32_t> seeds = vertices_of(on_.dataset, split, vertices_->names);
    shuffle_judged(seeds, split, config().seed, vertices_->names);
    judged_.insert(judged_.end(), seeds.begin(), seeds.end());
  }
  return true;
}

bool SampledBatches::begin_training(std::int64_t epoch, std::int64_t first,
                                    const std::atomic<bool>* stop) {
  if (!prepare(stop)) return false;
  evaluation_->rest();
  evaluates_ = is_announced_ = false;
  epoch_ = epoch;
  training_->begin(training_seeds(epoch), first);
  return true;
}

bool SampledBatches::begin_evaluation(std::int64_t epoch, const std::atomic<bool>* stop) {
  if (!prepare(stop)) return false;
  training_->rest();
  evaluates_ = true;
  is_announced_ = false;
  epoch_ = epoch;
  evaluation_->begin(evaluation_seeds(epoch));
  return true;
}

bool SampledBatches::next(const std::atomic<bool>* stop) {
  if (!loader().next(stop)) return false;
  if (loader().has_all() && !std::exchange(is_announced_, true)) announce();
  return true;
}

// What comes after what is begun.
void SampledBatches::announce() {
  if (!evaluates_ && evaluates(config(), epoch_)) {
    if (exact_ == nullptr) evaluation_->announce(evaluation_seeds(epoch_));
  } else if (epoch_ < config().epochs) {
    training_->announce(training_seeds(epoch_ + 1));
  }
}

// They are announced before they are begun with.
const SeedBatches& SampledBatches::training_seeds(std::int64_t epoch) {
  if (epoch == seeds_epoch_) return seeds_;
  seeds_ =
      epoch_batches(train_, config().sampling.batch_size, config().seed, epoch, vertices_->names);
  seeds_epoch_ = epoch;
  return seeds_;
}

SeedBatches SampledBatches::evaluation_seeds(std::int64_t epoch) const {
  return {judged_, config().sampling.batch_size,
          seed_key(SeedStream::kEvaluate, config().seed, epoch)};
}

LoadedWork SampledBatches::take_work() {
  return {loader().take_seconds(), loader().take_bytes(), loader().take_superbatches()};
}

void SampledBatches::release() {
  training_.reset();
  evaluation_.reset();
}

const BatchEpochForecast& SampledBatches::epoch_forecast() const {
  if (!forecast_) forecast_ = forecast_epoch(plan_, exact_);
  return *forecast_;
}

nlohmann::ordered_json SampledBatches::plan_json() const {
  return plan_to_json(plan_, epoch_forecast());
}

std::string SampledBatches::plan_text() const { return plan_to_text(plan_, epoch_forecast()); }

EpochForecast SampledBatches::forecast() const {
  const BatchEpochForecast& epoch = epoch_forecast();
  return {epoch.bytes_read + epoch.bytes_written, epoch.seconds, epoch.bound_seconds};
}

}  // namespace ooc
