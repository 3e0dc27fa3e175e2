#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "storage/block_io_kinds.h"
#include "storage/block_transfer.h"
#include "storage/errors.h"
#include "storage/file.h"

namespace ooc {
namespace {

constexpr unsigned kCopyThreads = 2;

class MappedBlockFile final : public BlockFile {
 public:
  explicit MappedBlockFile(std::unique_ptr<ReadableFile> file)
      : file_(std::move(file)), bytes_(file_->map()) {
    // The ranges asked for are fetched ahead one by one; the kernel's guesses would only add.
    if (!bytes_.empty()) advise(0, bytes_.size(), MADV_RANDOM);
  }
  const std::string& path() const override { return file_->path(); }
  std::uint64_t size() const override { return bytes_.size(); }
  bool direct() const override { return false; }

  std::span<const std::byte> range(std::uint64_t offset, std::size_t bytes) const {
    if (offset >= bytes_.size()) return {};
    return bytes_.subspan(offset, std::min<std::size_t>(bytes, bytes_.size() - offset));
  }
  void fetch(std::uint64_t offset, std::size_t bytes) const {
    if (const auto part = range(offset, bytes); !part.empty()) {
      advise(offset, part.size(), MADV_WILLNEED);
    }
  }

 private:
  void advise(std::uint64_t offset, std::size_t bytes, int advice) const {
    ::madvise(const_cast<std::byte*>(bytes_.data()) + offset, bytes, advice);
  }

  std::unique_ptr<ReadableFile> file_;
  std::span<const std::byte> bytes_;
};

ssize_t copy_mapped(const BlockTransfer& transfer) {
  const auto& file = static_cast<const MappedBlockFile&>(*transfer.request().file);
  const auto part = file.range(transfer.offset(), transfer.bytes());
  if (!part.empty()) std::memcpy(transfer.data(), part.data(), part.size());
  return static_cast<ssize_t>(part.size());
}

class MappedBlockIo final : public BlockIo {
 public:
  explicit MappedBlockIo(const BlockIoOptions& options)
      : threads_(kCopyThreads, 0, options.largest_call, copy_mapped) {}

  std::string_view name() const override { return "mapped"; }
  std::unique_ptr<BlockFile> open(const std::string& path) override {
    return std::make_unique<MappedBlockFile>(posix_file_system().open(path));
  }
  std::unique_ptr<BlockFile> create_temporary(const std::string& directory,
                                              std::uint64_t) override {
    throw_file_error(EROFS, "mapped files are only read, no temporary file", directory);
  }
  void submit(BlockRequest request) override {
    OOC_CHECK(request.kind == BlockRequest::Kind::kRead);
    static_cast<const MappedBlockFile*>(request.file)->fetch(request.offset, request.bytes);
    threads_.push(std::move(request));
  }

 private:
  TransferThreads threads_;
};

}  // namespace

std::unique_ptr<BlockIo> make_mapped_block_io(const BlockIoOptions& options) {
  return std::make_unique<MappedBlockIo>(options);
}

}  // namespace ooc
