// Builds a model: a program (engine/model/saga) in a stack of layers.
#pragma once

#include "engine/model/parts/model.h"

namespace ooc {

// UsageError for a wrong option, naming it and what it takes, and for a program that is none.
void check_options(const ModelOptions& options);

// UsageError where the program is wrong: syntax, names, shapes. DataError where it needs what the
// dataset's edges don't have.
Model build_model(const ModelOptions& options, const GraphFacts& facts, Mode mode, DType real);

}  // namespace ooc
