#include "storage/io/output_directory.h"

#include <utility>

#include "storage/base/errors.h"

namespace ooc {

OutputDirectory::OutputDirectory(FileSystem& files, std::string path, bool force,
                                 const Replaceable& replaceable)
    : files_(files),
      path_(std::move(path)),
      partial_(path_ + ".partial"),
      lock_path_(partial_ + ".lock") {
  replaces_ = files_.exists(path_);
  if (replaces_) {
    if (!force) {
      remove_stale_lock();
      throw UsageError("output exists", path_, "use --force to replace it");
    }
    if (!files_.is_directory(path_) || !replaceable.is(path_)) {
      throw UsageError(replaceable.refusal, path_, "remove it yourself or choose another name");
    }
  }
  take();
}

// The lock file is there whenever the directory is, so a directory without one is somebody else's.
// One with a lock that nobody holds was left by a writer that died.
void OutputDirectory::take() {
  const bool was_ours = files_.exists(lock_path_);
  if (!was_ours && files_.exists(partial_) &&
      (!files_.is_directory(partial_) || !files_.list(partial_).empty())) {
    throw UsageError("the name of the temporary directory is taken by something else", partial_,
                     "remove it yourself or choose another output");
  }
  lock_ = files_.lock(lock_path_);
  if (!lock_) {
    throw UsageError("another process is writing this output", path_,
                     "wait for it or choose another output");
  }
  files_.remove_all(partial_);
  files_.create_directories(partial_);
}

// A writer that died right after its last rename left the lock file alone.
void OutputDirectory::remove_stale_lock() {
  if (!files_.exists(lock_path_) || files_.exists(partial_)) return;
  if (const auto lock = files_.lock(lock_path_)) files_.remove_all(lock_path_);
}

void OutputDirectory::remove() {
  files_.remove_all(partial_);
  files_.remove_all(lock_path_);
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
  files_.sync_directory(partial_);
  if (!replaces_ && files_.exists(path_)) {
    throw UsageError("something of this name has appeared meanwhile", path_,
                     "choose another output, or use --force to replace it");
  }
  if (replaces_) {
    files_.exchange(partial_, path_);  // what is there is the old output or the new one, never none
  } else {
    files_.rename(partial_, path_);
  }
  committed_ = true;
  files_.sync_directory(parent_path(path_));
  remove();  // of the old output what there is
}

}  // namespace ooc
