// Everything needed to run a training again: config.toml of a run directory.
#pragma once

#include <cstdint>
#include <string>

#include "engine/model.h"
#include "storage/chunk_file.h"

namespace ooc {

struct RunConfig {
  std::string dataset;  // path, as given
  ModelOptions model;
  std::int64_t epochs = 200;
  double lr = 0.01;
  double weight_decay = 0;
  std::int64_t seed = 0;
  std::int64_t patience = 0;  // evaluations without a better valid metric; 0: no early stopping
  std::int64_t eval_every = 1;
  std::int64_t checkpoint_every = 10;
  VerifyPolicy verify = VerifyPolicy::kFirst;
  std::string rewrites;  // engine/rewrites.h: which are not made

  bool operator==(const RunConfig&) const = default;
};

// TOML whose keys are ooc-train's options, so it can be given to --config too. The program's text
// is not part of it (engine/run_directory.h, engine/checkpoint.h).
std::string to_toml(const RunConfig& config);
// DataError, naming `where`: not TOML, or a key missing, unknown or of a wrong value.
RunConfig run_config_from_toml(const std::string& text, const std::string& where);

}  // namespace ooc
