// --metric, of programs that have it.
#pragma once

#include <string>
#include <vector>

#include "bin/cli/command.h"
#include "engine/model/parts/task.h"

namespace ooc::cli {

// A list of metrics with commas between, each once. Empty where none is given.
void add_metric_option(Command& command, std::vector<Metric>& metrics,
                       const std::string& description);

}  // namespace ooc::cli
