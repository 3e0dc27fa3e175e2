// A short training of each model.
#pragma once

#include <string>
#include <vector>

#include "tests/engine/tiny_training.h"

namespace ooc::test {

inline constexpr const char* kAllModels[] = {"gcn",    "sage",    "gin",   "sgc",
                                             "resgcn", "commnet", "mpgcn", "sage_pool",
                                             "gat",    "gatv2",   "ggnn",  "ggcn"};

inline RunConfig config_of(const std::string& model) {
  RunConfig config;
  config.model.model = model;
  config.model.hidden = 24;
  if (model.starts_with("gat")) config.model.heads = 2;
  config.epochs = 2;
  return config;
}

inline std::vector<double> losses(TinyTraining& training, const RunConfig& config,
                                  const PlanOptions& options, EpochRecord* last = nullptr) {
  Trainer& trainer = training.start(config, options);
  std::vector<double> losses;
  while (trainer.state().epoch < config.epochs) {
    const EpochRecord record = trainer.run_epoch(nullptr).value();
    if (last != nullptr) *last = record;
    losses.insert(losses.end(), {record.loss, record.valid_loss, record.scores.front().test});
  }
  return losses;
}

}  // namespace ooc::test
