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

// Whether a run has a scratch directory of its own: one that samples has one in --scratch, too, as
// lists have names there.
inline bool has_own_scratch(const RunConfig& config) {
  return config.scratch.empty() || !config.sampling.fanouts.empty();
}
inline std::string scratch_path(const RunConfig& config, const std::string& run_path) {
  if (config.scratch.empty()) return join_path(run_path, "scratch");
  if (!has_own_scratch(config)) return config.scratch;
  const std::string name = std::filesystem::absolute(run_path).lexically_normal().string();
  return join_path(config.scratch, fmt::format("ooc-{:016x}", std::hash<std::string>()(name)));
}

// Where tensors go that don't fit memory. The run directory's own is made for the run and removed
// after it; what lies in it is gone with the process, however that ends.
class ScratchDirectory {
 public:
  ScratchDirectory(const RunConfig& config, const RunDirectory& run)
      : own_(has_own_scratch(config)), path_(scratch_path(config, run.path())) {
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
