// The order of a program's layers: what its model block says, or its one layer --layers times.
#pragma once

#include <vector>

#include "engine/model/saga/syntax.h"

namespace ooc::saga {

// A layer with parameters of its own, run `steps` times over them.
struct Unit {
  const Layer* layer = nullptr;  // in the program
  Place place;
  std::int64_t steps = 1;
  bool plain = false;
};

// UsageError where the model block is missing or wrong. `layers`: what --layers says.
std::vector<Unit> units_of(const Program& program, std::int64_t layers);

}  // namespace ooc::saga
