#include "engine/machine/storage_probe.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>

#include "storage/base/errors.h"

namespace ooc {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kRequest = 2 << 20;
constexpr std::int64_t kMostDepth = 16;
constexpr std::int64_t kFileBytes = 1 << 30;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Smaller where there is no room; null where none can be made.
std::unique_ptr<BlockFile> make_file(BlockIo& io, const std::string& directory) {
  for (std::int64_t bytes = kFileBytes; bytes >= kRequest; bytes /= 4) {
    try {
      return io.create_temporary(directory, static_cast<std::uint64_t>(bytes));
    } catch (const IoError& error) {
      spdlog::debug("{}", error.what());
    }
  }
  return nullptr;
}

}  // namespace

StorageProbe::StorageProbe(BlockIo& io, const std::string& directory, std::span<std::byte> memory)
    : io_(io),
      file_(make_file(io, directory)),
      buffers_(memory.data()),
      depth_(std::clamp<std::int64_t>(static_cast<std::int64_t>(memory.size()) / kRequest, 1,
                                      kMostDepth)) {}

void StorageProbe::fill(double seconds) {
  range_ = size();
  transfer(seconds, [](std::int64_t) { return BlockRequest::Kind::kWrite; });
  range_ = std::min(next_, size());
}

double StorageProbe::write(double seconds) {
  return transfer(seconds, [](std::int64_t) { return BlockRequest::Kind::kWrite; });
}

double StorageProbe::read(double seconds) {
  return transfer(seconds, [](std::int64_t) { return BlockRequest::Kind::kRead; });
}

double StorageProbe::both(double seconds) {
  return transfer(seconds, [](std::int64_t index) {
    return index % 2 == 0 ? BlockRequest::Kind::kRead : BlockRequest::Kind::kWrite;
  });
}

// From next_ on, around range_. A buffer's next request is submitted when its last one is done.
double StorageProbe::transfer(double seconds,
                              const std::function<BlockRequest::Kind(std::int64_t index)>& kind) {
  done_ = 0;
  const auto begin = Clock::now();
  std::function<void(std::int64_t)> submit = [&](std::int64_t buffer) {
    const std::int64_t offset = next_ % range_;
    const BlockRequest::Kind what = kind(next_ / kRequest);
    next_ += kRequest;
    ++pending_;
    io_.submit({what, file_.get(), static_cast<std::uint64_t>(offset), buffers_ + buffer * kRequest,
                static_cast<std::size_t>(kRequest), [&, buffer](std::exception_ptr error) {
                  const std::lock_guard lock(mutex_);
                  if (error && !error_) error_ = error;
                  done_ += kRequest;
                  if (!error_ && seconds_since(begin) < seconds) submit(buffer);
                  if (--pending_ == 0) all_done_.notify_all();
                }});
  };
  std::unique_lock lock(mutex_);
  try {
    for (std::int64_t buffer = 0; buffer < depth_; ++buffer) submit(buffer);
  } catch (...) {  // nothing goes on after what it refers to
    error_ = std::current_exception();
    --pending_;
  }
  all_done_.wait(lock, [&] { return pending_ == 0; });
  if (error_) std::rethrow_exception(error_);
  return static_cast<double>(done_) / seconds_since(begin);
}

}  // namespace ooc
