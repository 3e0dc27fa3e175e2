// Says when a device's queue has come to a point.
#pragma once

#include <optional>
#include <thread>

#include "kernels/device/queue.h"
#include "storage/base/closing_queue.h"
#include "storage/io/block_file.h"

namespace ooc {

// Many threads.
class QueueWatcher {
 public:
  // The queue outlives it.
  explicit QueueWatcher(Queue& queue);
  ~QueueWatcher();  // when all completions have been called
  QueueWatcher(const QueueWatcher&) = delete;
  QueueWatcher& operator=(const QueueWatcher&) = delete;

  // `done` is called once, from the watcher's thread, as completions of a BlockIo are, when the
  // queue has come to the ticket; with the queue's error if its work failed.
  void after(Ticket ticket, BlockCompletion done);
  // The same of what was not asked for: at once, with an error or without.
  void complete(std::exception_ptr error, BlockCompletion done);

 private:
  struct Watched {
    std::optional<Ticket> ticket;  // none: there is nothing to wait for
    std::exception_ptr error;
    BlockCompletion done;
  };
  void serve();

  Queue& queue_;
  ClosingQueue<Watched> watched_;
  std::thread thread_;
};

}  // namespace ooc
