#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "storage/base/errors.h"
#include "storage/io/block_io_kinds.h"
#include "storage/io/block_transfer.h"
#include "storage/io/file.h"
#include "storage/io/mapping_faults.h"

namespace ooc {
namespace {

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

constexpr unsigned kThreads = 2;
// Asked for ahead at once: a call fetches the disk's read-ahead at least, and may leave out more.
constexpr std::size_t kFetchBytes = 128 << 10;
// Copied at once, so that copies keep few pages that no plan counts.
constexpr std::size_t kCopyBytes = 256 << 10;
// A fault maps what the page cache has of an aligned window of this size.
constexpr std::uint64_t kFaultWindow = 64 << 10;

// Brings pages in and maps them, so that nobody waits for the disk who computes with them.
// Returns an errno; 0: they are there.
int populate(const std::byte* data, std::size_t bytes) {
  if (::madvise(const_cast<std::byte*>(data), bytes, MADV_POPULATE_READ) == 0) return 0;
  if (errno != EINVAL) return errno == EFAULT ? EIO : errno;
  // Before Linux 5.14. A page that can't be read is a SIGBUS here (mapping_faults.h).
  for (std::size_t at = 0; at < bytes; at += kIoAlignment) {
    static_cast<void>(*const_cast<const volatile std::byte*>(data + at));
  }
  return 0;
}

class MappedBlockFile final : public BlockFile {
 public:
  explicit MappedBlockFile(std::unique_ptr<ReadableFile> file)
      : file_(std::move(file)), bytes_(file_->map()), faults_(bytes_, file_->path()) {
    // The ranges asked for are fetched ahead one by one; the kernel's guesses would only add.
    if (!bytes_.empty()) advise(0, bytes_.size(), MADV_RANDOM);
  }
  const std::string& path() const override { return file_->path(); }
  std::uint64_t size() const override { return bytes_.size(); }
  bool direct() const override { return false; }
  std::span<const std::byte> mapping() const override { return bytes_; }
  // Whole windows: what faults beside the range mapped goes as well. It comes back without a read
  // where it is in use.
  void release(std::uint64_t offset, std::uint64_t bytes) const override {
    const std::uint64_t begin = offset / kFaultWindow * kFaultWindow;
    const std::uint64_t end = (offset + bytes + kFaultWindow - 1) / kFaultWindow * kFaultWindow;
    if (begin < bytes_.size()) {
      advise(begin, std::min<std::uint64_t>(end, bytes_.size()) - begin, MADV_DONTNEED);
    }
  }

  std::span<const std::byte> range(std::uint64_t offset, std::size_t bytes) const {
    if (offset >= bytes_.size()) return {};
    return bytes_.subspan(offset, std::min<std::size_t>(bytes, bytes_.size() - offset));
  }
  void fetch(std::uint64_t offset, std::size_t bytes) const {
    const std::size_t there = range(offset, bytes).size();
    for (std::size_t at = 0; at < there; at += kFetchBytes) {
      advise(offset + at, std::min(kFetchBytes, there - at), MADV_WILLNEED);
    }
  }

 private:
  void advise(std::uint64_t offset, std::size_t bytes, int advice) const {
    ::madvise(const_cast<std::byte*>(bytes_.data()) + offset, bytes, advice);
  }

  std::unique_ptr<ReadableFile> file_;
  std::span<const std::byte> bytes_;
  MappingFaults faults_;
};

// In place: the pages come in. Elsewhere: a copy of some, whose pages don't stay.
ssize_t read_mapped(const BlockTransfer& transfer) {
  const auto& file = static_cast<const MappedBlockFile&>(*transfer.request().file);
  auto part = file.range(transfer.offset(), transfer.bytes());
  if (part.empty()) return 0;
  const bool in_place = transfer.data() == part.data();
  if (!in_place) part = part.first(std::min(part.size(), kCopyBytes));
  if (const int error = populate(part.data(), part.size()); error != 0) return -error;
  if (!in_place) {
    std::memcpy(transfer.data(), part.data(), part.size());
    file.release(transfer.offset(), part.size());
  }
  return static_cast<ssize_t>(part.size());
}

class MappedBlockIo final : public BlockIo {
 public:
  // `own` may be null; otherwise it is `temporary`.
  MappedBlockIo(BlockIo& temporary, std::unique_ptr<BlockIo> own, std::size_t largest_call)
      : own_(std::move(own)),
        temporary_(temporary),
        threads_(kThreads, 0, largest_call, read_mapped) {}

  std::string_view name() const override { return "mapped"; }
  std::unique_ptr<BlockFile> open(const std::string& path) override {
    return std::make_unique<MappedBlockFile>(posix_file_system().open(path));
  }
  std::unique_ptr<BlockFile> create_temporary(const std::string& directory,
                                              std::uint64_t bytes) override {
    return temporary_.create_temporary(directory, bytes);
  }
  void submit(BlockRequest request) override {
    const auto* const file = dynamic_cast<const MappedBlockFile*>(request.file);
    if (file == nullptr) return temporary_.submit(std::move(request));
    OOC_CHECK(request.kind == BlockRequest::Kind::kRead);
    file->fetch(request.offset, request.bytes);
    threads_.push(std::move(request));
  }

 private:
  std::unique_ptr<BlockIo> own_;  // null: somebody else's
  BlockIo& temporary_;
  TransferThreads threads_;
};

}  // namespace

std::unique_ptr<BlockIo> make_mapped_block_io(const BlockIoOptions& options,
                                              std::unique_ptr<BlockIo> temporary) {
  BlockIo& own = *temporary;
  return std::make_unique<MappedBlockIo>(own, std::move(temporary), options.largest_call);
}

std::unique_ptr<BlockIo> make_mapped_block_io(BlockIo& temporary) {
  return std::make_unique<MappedBlockIo>(temporary, nullptr, BlockIoOptions().largest_call);
}

}  // namespace ooc
