// Text that programs compare and print.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ooc::cli {

// "none, batch or layer".
std::string join_alternatives(const std::vector<std::string>& words);

// "58 s", "3:20 min", "1:02:03 h".
std::string format_duration(double seconds);

// One line of UTF-8: control characters become spaces, bytes that are no UTF-8 "?".
std::string printable(std::string_view text);

}  // namespace ooc::cli
