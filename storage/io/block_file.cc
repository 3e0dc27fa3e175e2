#include "storage/io/block_file.h"

#include <spdlog/spdlog.h>

#include <system_error>
#include <utility>

#include "storage/base/errors.h"
#include "storage/io/block_io_kinds.h"

namespace ooc {

std::unique_ptr<BlockIo> make_block_io(const BlockIoOptions& options) {
  OOC_CHECK(options.depth > 0);
  if (options.kind == BlockIoKind::kMapped) {
    BlockIoOptions temporary = options;
    temporary.kind = BlockIoKind::kBest;
    return make_mapped_block_io(options, make_block_io(temporary));
  }
  if (options.kind != BlockIoKind::kThreads) {
    int error = 0;
    if (auto io = make_uring_block_io(options, error)) return io;
    const std::string why = std::error_code(error, std::generic_category()).message();
    if (options.kind == BlockIoKind::kUring) {
      throw IoError("io_uring is refused here (" + why + ")", "--io uring",
                    "take --io threads, or leave it out");
    }
    spdlog::info("io_uring is refused here ({}): reading and writing with threads", why);
  }
  return make_threads_block_io(options);
}

BlockWait::~BlockWait() {
  std::unique_lock lock(mutex_);
  all_done_.wait(lock, [this] { return pending_ == 0; });
}

BlockCompletion BlockWait::completion() {
  const std::lock_guard lock(mutex_);
  ++pending_;
  return [this](std::exception_ptr error) {
    // Notified under the lock: the waiter may destroy this as soon as it holds it.
    const std::lock_guard completed(mutex_);
    if (error && !error_) error_ = std::move(error);
    if (--pending_ == 0) all_done_.notify_all();
  };
}

void BlockWait::wait() {
  std::unique_lock lock(mutex_);
  all_done_.wait(lock, [this] { return pending_ == 0; });
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

}  // namespace ooc
