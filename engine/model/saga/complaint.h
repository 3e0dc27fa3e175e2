// The errors of programs: "mine.saga:4:12: expected ..., found ...; ...".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/model/saga/syntax.h"

namespace ooc::saga {

std::string place_text(const std::string& source, const Place& place);

// Throws the UsageError. Without a remedy it points to a program that is right.
[[noreturn]] void refuse(const std::string& source, const Place& place, const std::string& expected,
                         const std::string& found, const std::string& remedy = "");

// The same for a name that stands for nothing here; names a near one, or all of few.
[[noreturn]] void refuse_name(const std::string& source, const Place& place,
                              const std::string& expected, const std::string& name,
                              const std::vector<std::string>& known);

}  // namespace ooc::saga
