// Where a run's temporary files go.
#pragma once

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <functional>
#include <string>

#include "engine/train/run_directory.h"
#include "storage/base/errors.h"
#include "storage/io/file.h"

namespace ooc {

// Where tensors go that don't fit memory. The run directory's own is made for the run and removed
// after it; what lies in it is gone with the process, however that ends.
class ScratchDirectory {
 public:
  // Of a run that samples it is one of its own in --scratch, too: lists have names there.
  ScratchDirectory(const RunConfig& config, const RunDirectory& run)
      : own_(config.scratch.empty() || !config.sampling.fanouts.empty()),
        path_(config.scratch.empty() ? join_path(run.path(), "scratch") : config.scratch) {
    if (own_ && !config.scratch.empty()) {
      const std::string name = std::filesystem::absolute(run.path()).lexically_normal().string();
      path_ = join_path(path_, fmt::format("ooc-{:016x}", std::hash<std::string>()(name)));
    }
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
