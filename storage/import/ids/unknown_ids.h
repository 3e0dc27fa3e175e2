// What a message says of ids that no vertex has.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace ooc {

inline constexpr std::size_t kMostUnknownNamed = 3;

// "vertex ids 5, 7 are in no edge", or "are not in ids.csv" where that is the `source` of all ids.
std::string unknown_ids(std::span<const std::string> ids, const std::string& source);
// What to do about them.
std::string_view unknown_ids_remedy(const std::string& source);

}  // namespace ooc
