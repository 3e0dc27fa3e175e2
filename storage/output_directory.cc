#include "storage/output_directory.h"

#include <utility>

#include "storage/errors.h"

namespace ooc {
namespace {

constexpr const char* kLockFile = ".ooc-lock";

}  // namespace

OutputDirectory::OutputDirectory(FileSystem& files, std::string path, bool force,
                                 const std::function<bool(const std::string& name)>& is_ours)
    : files_(files), path_(std::move(path)), partial_(path_ + ".partial") {
  if (files_.exists(path_)) {
    if (!force) throw UsageError("output exists", path_, "use --force to replace it");
    bool ours = files_.is_directory(path_);
    for (const std::string& name : ours ? files_.list(path_) : std::vector<std::string>{}) {
      ours = ours && is_ours(name);
    }
    if (!ours) {
      throw UsageError("--force replaces what an earlier run wrote, and there is more", path_,
                       "remove it yourself or choose another name");
    }
  }
  take();
}

// A directory with a lock file that nobody holds was left by a writer that died: it is emptied.
void OutputDirectory::take() {
  const std::string lock_path = file_path(kLockFile);
  if (files_.exists(partial_) && !files_.exists(lock_path) &&
      (!files_.is_directory(partial_) || !files_.list(partial_).empty())) {
    throw UsageError("the name of the temporary directory is taken by something else", partial_,
                     "remove it yourself or choose another output");
  }
  files_.create_directories(partial_);
  lock_ = files_.lock(lock_path);
  if (!lock_) {
    throw UsageError("another process is writing this output", path_,
                     "wait for it or choose another output");
  }
  for (const std::string& name : files_.list(partial_)) {
    if (name != kLockFile) files_.remove_all(file_path(name));
  }
}

// The lock file last, so that what is left is known as ours wherever this is interrupted.
void OutputDirectory::remove() {
  for (const std::string& name : files_.list(partial_)) {
    if (name != kLockFile) files_.remove_all(file_path(name));
  }
  files_.remove_all(partial_);
  lock_.reset();
}

OutputDirectory::~OutputDirectory() {
  if (committed_) return;
  try {
    remove();
  } catch (const Error&) {  // what failed first is on its way to the user already
  }
}

void OutputDirectory::commit() {
  const std::string lock_path = file_path(kLockFile);
  files_.remove_all(lock_path);
  files_.sync_directory(partial_);
  const bool replaces = files_.exists(path_);
  if (replaces) {
    files_.exchange(partial_, path_);  // what is there is the old output or the new one, never none
    lock_ = files_.lock(lock_path);    // of the old one, until it is removed
  } else {
    files_.rename(partial_, path_);
  }
  committed_ = true;
  files_.sync_directory(parent_path(path_));
  if (replaces) remove();
}

}  // namespace ooc
