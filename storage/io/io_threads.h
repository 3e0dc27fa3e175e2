// A few threads that do nothing but wait for files, so that those which compute never do.
#pragma once

#include <cstddef>
#include <functional>
#include <future>
#include <thread>
#include <vector>

#include "storage/base/closing_queue.h"

namespace ooc {

class IoThreads {
 public:
  // Fewer than `count` where the system does not give as many; IoError where it gives none.
  explicit IoThreads(std::size_t count = 4);
  // Runs what was submitted to its end.
  ~IoThreads();
  IoThreads(const IoThreads&) = delete;
  IoThreads& operator=(const IoThreads&) = delete;

  // Runs `task` soon, in order of submission; get() of the future throws what it threw. What it
  // refers to must live until then. Many threads.
  std::future<void> submit(std::function<void()> task);

 private:
  void work();

  ClosingQueue<std::packaged_task<void()>> tasks_;
  std::vector<std::thread> threads_;
};

}  // namespace ooc
