// A directory for the temporary files of one output.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "storage/base/errors.h"
#include "storage/io/file.h"

namespace ooc::cli {

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
