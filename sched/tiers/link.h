// The link between the host's memory and a device's: copies that say when they are done.
#pragma once

#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>

#include "kernels/device/backend.h"
#include "storage/base/closing_queue.h"
#include "storage/io/block_file.h"

namespace ooc {

// Many threads. Copies are handed to the backend at once, so that its stream always has the next
// one, and are done in that order.
class Link {
 public:
  // The backend outlives it.
  explicit Link(Backend& backend);
  ~Link();  // when all copies are done
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // `done` is called once, from the link's thread, as completions of a BlockIo are; with the
  // backend's error if it failed.
  void copy(void* to, const void* from, std::size_t bytes, CopyKind kind, BlockCompletion done);

 private:
  struct Copy {
    Event event;
    std::exception_ptr error;  // it could not be issued
    BlockCompletion done;
  };
  void serve();

  Backend& backend_;
  std::mutex issuing_;
  ClosingQueue<Copy> copies_;  // issued, not known to be done
  std::thread thread_;
};

}  // namespace ooc
