#include "bin/cli/paths.h"

#include <filesystem>

#include "storage/io/file.h"

namespace ooc::cli {

bool assign_path(std::string& path, const std::string& text) {
  path = text;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return !path.empty();
}

bool may_be_directory(std::string path) {
  while (!posix_file_system().exists(path)) path = parent_path(path);
  return posix_file_system().is_directory(path);
}

std::string follow_links(const std::string& path) {
  constexpr int kMostLinks = 40;  // as Linux has it
  std::string at = path;
  std::error_code unreadable;
  for (int i = 0; i < kMostLinks && std::filesystem::is_symlink(at, unreadable); ++i) {
    const std::filesystem::path target = std::filesystem::read_symlink(at, unreadable);
    if (!assign_path(at, (std::filesystem::path(at).parent_path() / target).string())) break;
  }
  return at;
}

}  // namespace ooc::cli
