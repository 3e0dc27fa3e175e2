// A directory of results that appears under its name in one step: until commit() it is built beside
// it, in `path`.partial; a lock on `path`.partial.lock keeps a second writer out. One thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "storage/io/file.h"

namespace ooc {

class OutputDirectory {
 public:
  // Which directories `force` may replace, and what is said of the others.
  struct Replaceable {
    std::function<bool(const std::string& path)> is;
    std::string_view refusal;
  };
  // UsageError if `path` exists and `force` is not set, or if it is not replaceable; if
  // `path`.partial is at work elsewhere, or is something that no writer left there.
  OutputDirectory(FileSystem& files, std::string path, bool force, const Replaceable& replaceable);
  // Without commit(): removes what was written.
  ~OutputDirectory();
  OutputDirectory(const OutputDirectory&) = delete;
  OutputDirectory& operator=(const OutputDirectory&) = delete;

  const std::string& path() const { return path_; }
  // Where to write a file of this name.
  std::string file_path(const std::string& name) const { return join_path(partial_, name); }
  // Replaces what was there at the start. Every file must be durable. UsageError if something has
  // appeared under the name where nothing was.
  void commit();

 private:
  void take();
  void remove_stale_lock();
  void remove();

  FileSystem& files_;
  std::string path_;
  std::string partial_;
  std::string lock_path_;
  std::unique_ptr<FileLock> lock_;  // the directory is ours, and no other writer's
  bool replaces_ = false;
  bool committed_ = false;
};

}  // namespace ooc
