#include "bin/cli/own_scratch.h"

#include <fmt/format.h>

#include <filesystem>
#include <functional>

#include "storage/base/errors.h"

namespace ooc::cli {
namespace {

std::string lock_of(const std::string& path) { return path + ".lock"; }

}  // namespace

OwnScratch::OwnScratch(const std::string& directory, const std::string& output) {
  if (directory.empty()) return;
  FileSystem& files = posix_file_system();
  const std::string name = std::filesystem::absolute(output).lexically_normal().string();
  const std::string path =
      join_path(directory, fmt::format("ooc-{:016x}", std::hash<std::string>()(name)));
  files.create_directories(directory);
  lock_ = files.lock(lock_of(path));
  if (!lock_) {
    throw UsageError("another process is writing this output", output,
                     "wait for it, or choose another name");
  }
  files.remove_all(path);
  files.create_directories(path);
  path_ = path;
}

OwnScratch::~OwnScratch() {
  if (path_.empty()) return;
  try {
    posix_file_system().remove_all(path_);
    posix_file_system().remove_all(lock_of(path_));
  } catch (const Error&) {  // what failed first is on its way to the user already
  }
}

}  // namespace ooc::cli
