// Which options a program reads: what it doesn't mention has no effect on it.
#pragma once

#include <set>
#include <string>

#include "engine/model/saga/syntax.h"

namespace ooc::saga {

// Every name, member (src.in_factor), function and fold in its layers, except the names of bindings
// and parameters.
std::set<std::string> mentions(const Program& program);

// Whether heads make a difference.
bool says_heads(const Program& program);

// Whether a layer gathers `with weights`; whether an edge block reads data.weight.
bool gathers_weighted(const Program& program);
bool says_data_weight(const Program& program);

}  // namespace ooc::saga
