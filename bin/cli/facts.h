// Results on stdout: the same facts as JSON or as text for people.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace ooc::cli {

using Facts = nlohmann::ordered_json;

// A line a fact: its name, then its value; facts of a fact are indented. Counts get separators,
// numbers named "..._bytes" or "bytes_...", or under such a name, become sizes; what is null or
// empty is left out.
std::string facts_to_text(const Facts& facts);

// As JSON where `json` is set, as text elsewhere.
void print_facts(const Facts& facts, bool json);

}  // namespace ooc::cli
