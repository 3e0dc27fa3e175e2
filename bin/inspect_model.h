// ooc-inspect --model: what a program is and becomes.
#pragma once

#include <optional>
#include <string>

#include "bin/cli/command.h"
#include "engine/model/parts/model.h"

namespace ooc {

struct InspectedModel {
  std::string model;  // empty: none was asked for
  ModelOptions options;
  std::optional<std::int64_t> heads;
  GraphFacts facts{1000, 100, 10, 500, 1, 1, true};
};

void add_model_options(cli::Command& command, InspectedModel& inspected);
void print_model(InspectedModel& inspected, bool json);

}  // namespace ooc
