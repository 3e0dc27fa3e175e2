#include "storage/io/io_threads.h"

#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "storage/base/errors.h"

namespace ooc {

IoThreads::IoThreads(std::size_t count) {
  threads_.reserve(count);
  try {
    for (std::size_t i = 0; i < count; ++i) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error& error) {
    if (!threads_.empty()) return;  // fewer do as well
    throw IoError(fmt::format("cannot start a thread ({})", error.what()), "this process",
                  "raise the limits on processes or memory (ulimit -u, -v)");
  }
}

IoThreads::~IoThreads() {
  tasks_.close();
  for (std::thread& thread : threads_) thread.join();
}

std::future<void> IoThreads::submit(std::function<void()> task) {
  std::packaged_task<void()> packaged(std::move(task));
  std::future<void> done = packaged.get_future();
  tasks_.push(std::move(packaged));
  return done;
}

void IoThreads::work() {
  while (auto task = tasks_.pop()) (*task)();
}

}  // namespace ooc
