#include "storage/io/block_transfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "storage/base/errors.h"
#include "storage/base/wakeup_latency.h"
#include "storage/io/file.h"

namespace ooc {

BlockTransfer::BlockTransfer(BlockRequest request, std::size_t largest_call)
    : request_(std::move(request)), largest_call_(largest_call) {
  OOC_CHECK(request_.file != nullptr && request_.bytes > 0);
  OOC_CHECK(request_.offset % kIoAlignment == 0);
  OOC_CHECK(reinterpret_cast<std::uintptr_t>(request_.data) % kIoAlignment == 0);
  OOC_CHECK(largest_call_ > 0 && largest_call_ % kIoAlignment == 0);
}

std::size_t BlockTransfer::bytes() const {
  return std::min<std::size_t>(io_aligned(request_.bytes) - next_, largest_call_);
}

bool BlockTransfer::fail(int error_number) {
  const bool is_read = request_.kind == BlockRequest::Kind::kRead;
  try {
    throw_file_error(error_number, is_read ? "cannot read" : "cannot write", request_.file->path(),
                     request_.offset + reached_);
  } catch (...) {
    error_ = std::current_exception();
  }
  return true;
}

bool BlockTransfer::advance(ssize_t result) {
  if (result == -EINTR || result == -EAGAIN) return false;
  if (result < 0) return fail(static_cast<int>(-result));
  const std::size_t reached = next_ + static_cast<std::size_t>(result);
  const bool is_read = request_.kind == BlockRequest::Kind::kRead;
  if (reached >= (is_read ? request_.bytes : io_aligned(request_.bytes))) return true;
  if (reached <= reached_) {  // no further than before: the file, or the disk, ends here
    if (!is_read) return fail(ENOSPC);
    error_ = std::make_exception_ptr(DataError(
        fmt::format("truncated file: {} bytes wanted, {} there", request_.bytes, reached_),
        fmt::format("{} at byte {}", request_.file->path(), request_.offset),
        "the file is damaged: make it again"));
    return true;
  }
  reached_ = reached;
  next_ = reached / kIoAlignment * kIoAlignment;
  return false;
}

void BlockTransfer::complete() { request_.done(std::exchange(error_, nullptr)); }

TransferThreads::TransferThreads(unsigned readers, unsigned writers, std::size_t largest_call,
                                 Call call)
    : largest_call_(largest_call), call_(std::move(call)) {
  for (unsigned i = 0; i < readers; ++i) threads_.emplace_back([this] { serve(queues_[0]); });
  for (unsigned i = 0; i < writers; ++i) threads_.emplace_back([this] { serve(queues_[1]); });
}

TransferThreads::~TransferThreads() {
  {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [this] { return pending_ == 0; });
  }
  for (ClosingQueue<BlockRequest>& queue : queues_) queue.close();
  for (std::thread& thread : threads_) thread.join();
}

void TransferThreads::push(BlockRequest request) {
  {
    const std::lock_guard lock(mutex_);
    ++pending_;
  }
  queues_[request.kind == BlockRequest::Kind::kRead ? 0 : 1].push(std::move(request));
}

void TransferThreads::serve(ClosingQueue<BlockRequest>& queue) {
  reduce_wakeup_latency();
  while (std::optional<BlockRequest> request = queue.pop()) {
    {
      BlockTransfer transfer(std::move(*request), largest_call_);
      request.reset();
      while (!transfer.advance(call_(transfer))) {
      }
      transfer.complete();
    }  // what the completion holds is gone before the request counts as done
    const std::lock_guard lock(mutex_);
    if (--pending_ == 0) idle_.notify_all();
  }
}

}  // namespace ooc
