// From the text of a program to its syntax (engine/model/saga/syntax.h).
#pragma once

#include <string>
#include <string_view>

#include "engine/model/saga/syntax.h"

namespace ooc::saga {

inline constexpr std::size_t kMaxProgramBytes = 32 << 10;  // so that a checkpoint can hold it

// `source`: what messages call the text. UsageError with line and column where it is no program.
Program parse(std::string_view text, const std::string& source);

}  // namespace ooc::saga
