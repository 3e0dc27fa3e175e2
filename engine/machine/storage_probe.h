// What storage does in a second: a part of rate_probes.h.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "storage/io/block_file.h"

namespace ooc {

// A temporary file, past the page cache, in large requests of which many are under way. One thread
// measures.
class StorageProbe {
 public:
  // `memory`: where requests come from and go to, 2 MiB at least.
  StorageProbe(BlockIo& io, const std::string& directory, std::span<std::byte> memory);

  // Otherwise none could be made, for want of room or of the right to.
  bool has_file() const { return file_ != nullptr; }
  // Comes first: writes what is measured then, as much as there is time for. Blocks that were never
  // written come from nowhere, and take longer to write than in all but an epoch. IoError.
  void fill(double seconds);
  // Bytes a second, over so many seconds. IoError.
  double write(double seconds);
  double read(double seconds);
  double both(double seconds);

 private:
  std::int64_t size() const { return static_cast<std::int64_t>(file_->size()); }
  double transfer(double seconds,
                  const std::function<BlockRequest::Kind(std::int64_t index)>& kind);

  BlockIo& io_;
  std::unique_ptr<BlockFile> file_;
  std::byte* buffers_;
  std::int64_t depth_;
  std::int64_t range_ = 0;
  std::mutex mutex_;
  std::condition_variable all_done_;
  std::int64_t next_ = 0, done_ = 0, pending_ = 0;
  std::exception_ptr error_;
};

}  // namespace ooc
