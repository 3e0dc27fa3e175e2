// Paths as users write them for options.
#pragma once

#include <string>

namespace ooc::cli {

// The path without slashes at its end. False where there is none.
bool assign_path(std::string& path, const std::string& text);

// Whether the last part of the path that is there is a directory.
bool may_be_directory(std::string path);

// What symbolic links lead to, whether or not it is there.
std::string follow_links(const std::string& path);

}  // namespace ooc::cli
