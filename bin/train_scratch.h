// Where a run's temporary files go.
#pragma once

#include <spdlog/spdlog.h>

#include <string>

#include "engine/train/run_directory.h"
#include "storage/base/errors.h"
#include "storage/io/file.h"

namespace ooc {

// Where tensors go that don't fit memory. The run directory's own is made for the run and removed
// after it; what lies in it is gone with the process, however that ends.
class ScratchDirectory {
 public:
  ScratchDirectory(const RunConfig& config, const RunDirectory& run)
      : own_(config.scratch.empty()),
        path_(own_ ? join_path(run.path(), "scratch") : config.scratch) {
    if (own_) posix_file_system().remove_all(path_);
    posix_file_system().create_directories(path_);
  }
  ~ScratchDirectory() {
    if (!own_) return;
    try {
      posix_file_system().remove_all(path_);
    } catch (const Error& error) {
      spdlog::warn("{}", error.what());
    }
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  bool own_;
  std::string path_;
};

}  // namespace ooc
