// What the implementations of storage/io/block_file.h share: one request on its way, call by call,
// and the threads that serve requests where there is no io_uring.
#pragma once

#include <sys/types.h>

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "storage/base/closing_queue.h"
#include "storage/io/block_file.h"

namespace ooc {

// Says what to ask the system for next and takes its answer, until the request is finished: what
// was cut short or interrupted is asked for again. One thread at a time.
class BlockTransfer {
 public:
  // OOC_CHECKs the request's alignment.
  BlockTransfer(BlockRequest request, std::size_t largest_call);

  const BlockRequest& request() const { return request_; }
  // The next call's range; whole units of kIoAlignment.
  std::uint64_t offset() const { return request_.offset + next_; }
  std::byte* data() const { return request_.data + next_; }
  std::size_t bytes() const;

  // `result`: bytes, 0 at the file's end, or -errno. True: finished, call complete().
  bool advance(ssize_t result);
  void complete();

 private:
  bool fail(int error_number);

  BlockRequest request_;
  std::size_t largest_call_;
  std::size_t reached_ = 0;  // bytes there
  std::size_t next_ = 0;     // where the next call begins: `reached_`, aligned downwards
  std::exception_ptr error_;
};

// Threads for reads and threads for writes, so that reads never wait for writes.
class TransferThreads {
 public:
  // Moves some of the bytes that the transfer asks for; its result goes to advance().
  using Call = std::function<ssize_t(const BlockTransfer&)>;
  // `writers` may be 0 where nothing is written.
  TransferThreads(unsigned readers, unsigned writers, std::size_t largest_call, Call call);
  // Returns when nothing is left, what completions push included.
  ~TransferThreads();
  TransferThreads(const TransferThreads&) = delete;
  TransferThreads& operator=(const TransferThreads&) = delete;

  void push(BlockRequest request);

 private:
  void serve(ClosingQueue<BlockRequest>& queue);

  std::size_t largest_call_;
  Call call_;
  std::mutex mutex_;
  std::condition_variable idle_;
  std::size_t pending_ = 0;
  std::array<ClosingQueue<BlockRequest>, 2> queues_;  // by kind
  std::vector<std::thread> threads_;
};

}  // namespace ooc
