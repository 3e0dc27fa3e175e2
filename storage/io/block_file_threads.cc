#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "storage/io/block_io_kinds.h"
#include "storage/io/block_transfer.h"
#include "storage/io/direct_file.h"

namespace ooc {
namespace {

constexpr unsigned kMostThreads = 8;  // of each kind: enough for a disk, few to have

ssize_t call_kernel(const BlockTransfer& transfer) {
  const int fd = static_cast<const DirectFile*>(transfer.request().file)->fd();
  const auto offset = static_cast<off_t>(transfer.offset());
  const ssize_t count = transfer.request().kind == BlockRequest::Kind::kRead
                            ? ::pread(fd, transfer.data(), transfer.bytes(), offset)
                            : ::pwrite(fd, transfer.data(), transfer.bytes(), offset);
  return count < 0 ? -errno : count;
}

class ThreadsBlockIo final : public BlockIo {
 public:
  explicit ThreadsBlockIo(const BlockIoOptions& options)
      : files_(options.refuse_direct),
        threads_(std::min(options.depth, kMostThreads), std::min(options.depth, kMostThreads),
                 options.largest_call, call_kernel) {}

  std::string_view name() const override { return "pread"; }
  std::unique_ptr<BlockFile> open(const std::string& path) override { return files_.open(path); }
  std::unique_ptr<BlockFile> create_temporary(const std::string& directory,
                                              std::uint64_t bytes) override {
    return files_.create_temporary(directory, bytes);
  }
  void submit(BlockRequest request) override { threads_.push(std::move(request)); }

 private:
  DirectFiles files_;
  TransferThreads threads_;
};

}  // namespace

std::unique_ptr<BlockIo> make_threads_block_io(const BlockIoOptions& options) {
  return std::make_unique<ThreadsBlockIo>(options);
}

}  // namespace ooc
