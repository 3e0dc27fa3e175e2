// A directory for the temporary files of one output, and what there is room for.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "storage/base/errors.h"
#include "storage/io/file.h"

namespace ooc::cli {

// What is free where a path lies or would; without limit where that can't be said.
inline std::int64_t free_disk_bytes(std::filesystem::path path) {
  std::error_code error;
  path = std::filesystem::absolute(path);
  while (!std::filesystem::exists(path, error) && path.has_relative_path()) {
    path = path.parent_path();
  }
  const std::filesystem::space_info space = std::filesystem::space(path, error);
  constexpr std::int64_t kMost = std::int64_t{1} << 62;
  if (error || space.available > static_cast<std::uintmax_t>(kMost)) return kMost;
  return static_cast<std::int64_t>(space.available);
}

// Of files in a directory; 0 where there is none.
inline std::int64_t disk_bytes_of(const std::string& directory) {
  std::int64_t bytes = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (entry.is_regular_file(error)) bytes += static_cast<std::int64_t>(entry.file_size(error));
  }
  return bytes;
}

// In a directory that others use, too. It is removed with what lies in it, and so is what a killed
// process left there.
class OwnScratch {
 public:
  // Empty: nowhere, and nothing is made. UsageError where another process makes the same output.
  OwnScratch(const std::string& directory, const std::string& output) {
    if (directory.empty()) return;
    const std::string name = std::filesystem::absolute(output).lexically_normal().string();
    const std::string path =
        join_path(directory, fmt::format("ooc-{:016x}", std::hash<std::string>()(name)));
    files_.create_directories(directory);
    lock_ = files_.lock(path + kLock);
    if (!lock_) {
      throw UsageError("another process is writing this output", output,
                       "wait for it, or choose another name");
    }
    files_.remove_all(path);
    files_.create_directories(path);
    path_ = path;
  }
  ~OwnScratch() {
    if (path_.empty()) return;
    try {
      files_.remove_all(path_);
      files_.remove_all(path_ + kLock);
    } catch (const Error&) {  // what failed first is on its way to the user already
    }
  }
  OwnScratch(const OwnScratch&) = delete;
  OwnScratch& operator=(const OwnScratch&) = delete;

  const std::string& path() const { return path_; }  // empty: none

 private:
  static constexpr const char* kLock = ".lock";

  FileSystem& files_ = posix_file_system();
  std::string path_;
  std::unique_ptr<FileLock> lock_;
};

}  // namespace ooc::cli
