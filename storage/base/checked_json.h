// JSON files that carry their own checksum: the last member, "checksum", is the XXH3-64 of all that
// stands before it, dumped compactly in its order, as 16 hexadecimal digits.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace ooc {

// 16 hexadecimal digits, and back: what std::stoull throws where it is no such number.
std::string checksum_text(std::uint64_t checksum);
std::uint64_t checksum_of_text(const std::string& text);

// The file's text of these members: the checksum is added, levels are indented by 2.
std::string checked_json_text(nlohmann::ordered_json json);
// Whether the text is byte for byte as one is written: blanks are in no checksum.
bool is_canonical_json(const std::string& text);
// Null where it nests deeper than any of ours: writing JSON takes stack for every level. Throws
// what nlohmann does where it is no JSON.
nlohmann::ordered_json parse_shallow_json(const std::string& text);
// Takes the checksum out of what was parsed. Nothing: it is wrong.
std::optional<std::string> take_checksum(nlohmann::ordered_json& json);

}  // namespace ooc
