// Numbers as users write them for options.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ooc::cli {

// Nothing where the text is none, or more than one.
std::optional<std::int64_t> parse_integer(std::string_view text);
std::optional<double> parse_real(std::string_view text);  // finite

// Bytes of a size such as 4GiB. 0 for what is none, and for a number without a unit that is so
// small that one was forgotten.
std::int64_t credible_size(std::string_view text);

}  // namespace ooc::cli
