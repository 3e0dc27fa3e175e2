// What stderr is shown on.
#pragma once

#include <cstddef>

namespace ooc::cli {

// Goes back to the begin of the line and empties it.
inline constexpr const char* kClearLine = "\r\x1b[K";

// Whether a line on stderr can be written anew: it is a terminal, and not a dumb one (TERM).
bool stderr_renews_lines();

// Columns of that terminal as it is now; 80 where it doesn't say.
std::size_t stderr_columns();

// Whether NO_COLOR (no-color.org) forbids colours.
bool no_color();

}  // namespace ooc::cli
