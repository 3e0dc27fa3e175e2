// Builds a model: a program (engine/model/saga) in a stack of layers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/model/parts/model.h"

namespace ooc {

// UsageError for a wrong option, naming it and what it takes, and for a program that is none.
void check_options(const ModelOptions& options);

// UsageError where the use of the edges' weights that is asked for can't be.
void check_edge_weights(const ModelOptions& options, bool are_there);

// What the dataset's edges carry and the model can't read: of "weights", "types", "features".
// Weights that it is to ignore are not among them.
std::vector<std::string> unread_edge_data(const ModelOptions& options, const GraphFacts& facts);

// UsageError where the program is wrong: syntax, names, shapes. DataError where it needs what the
// dataset's edges don't have.
Model build_model(const ModelOptions& options, const GraphFacts& facts, Mode mode, DType real);

}  // namespace ooc
