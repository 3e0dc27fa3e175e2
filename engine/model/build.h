// Builds a model: a program (engine/model/saga) in a stack of layers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/model/parts/model.h"

namespace ooc {

// UsageError for a wrong option, naming it and what it takes, and for a program that is none.
void check_options(const ModelOptions& options);

// What becomes of the edges' weights: as is wanted, otherwise used where the dataset has some and
// the program takes them. UsageError where what is wanted can't be.
EdgeWeights chosen_edge_weights(const ModelOptions& options, std::optional<EdgeWeights> wanted,
                                bool are_there);

// What the dataset's edges carry and the model can't read: of "weights", "types", "features".
std::vector<std::string> unread_edge_data(ModelOptions options, const GraphFacts& facts);

// UsageError where the program is wrong: syntax, names, shapes. DataError where it needs what the
// dataset's edges don't have.
Model build_model(const ModelOptions& options, const GraphFacts& facts, Mode mode, DType real);

}  // namespace ooc
