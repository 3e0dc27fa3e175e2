// JSON as text, for files and for people.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace ooc {

// Each level further in by `indent` blanks; -1: on one line. Strings may be paths, in any encoding:
// what is no UTF-8 in them is replaced.
std::string json_text(const nlohmann::ordered_json& json, int indent = -1);

}  // namespace ooc
