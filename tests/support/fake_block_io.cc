#include "tests/support/fake_block_io.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "storage/base/byte_size.h"

namespace ooc::test {
namespace {

class MemoryBlockFile : public BlockFile {
 public:
  // Up to `bytes` of them; as pread and pwrite.
  virtual std::size_t read_some(std::uint64_t offset, std::byte* data, std::size_t bytes) = 0;
  virtual std::size_t write_some(std::uint64_t offset, const std::byte* data,
                                 std::size_t bytes) = 0;
  bool direct() const override { return true; }
};

class ReadOnlyFile final : public MemoryBlockFile {
 public:
  explicit ReadOnlyFile(std::unique_ptr<ReadableFile> file) : file_(std::move(file)) {}
  const std::string& path() const override { return file_->path(); }
  std::uint64_t size() const override { return file_->size(); }
  std::size_t read_some(std::uint64_t offset, std::byte* data, std::size_t bytes) override {
    return file_->read_at(offset, {data, bytes});
  }
  std::size_t write_some(std::uint64_t, const std::byte*, std::size_t) override { return 0; }

 private:
  std::unique_ptr<ReadableFile> file_;
};

class TemporaryFile final : public MemoryBlockFile {
 public:
  TemporaryFile(std::string path, std::uint64_t bytes,
                std::shared_ptr<std::atomic<std::uint64_t>> free_bytes)
      : path_(std::move(path)), bytes_(bytes), free_bytes_(std::move(free_bytes)) {}
  ~TemporaryFile() override { *free_bytes_ += bytes_.size(); }
  const std::string& path() const override { return path_; }
  std::uint64_t size() const override { return bytes_.size(); }
  std::size_t read_some(std::uint64_t offset, std::byte* data, std::size_t bytes) override {
    const std::lock_guard lock(mutex_);
    if (offset >= bytes_.size()) return 0;
    const std::size_t count = std::min<std::size_t>(bytes, bytes_.size() - offset);
    std::memcpy(data, bytes_.data() + offset, count);
    return count;
  }
  std::size_t write_some(std::uint64_t offset, const std::byte* data, std::size_t bytes) override {
    const std::lock_guard lock(mutex_);
    if (offset + bytes > bytes_.size()) bytes_.resize(offset + bytes);
    std::memcpy(bytes_.data() + offset, data, bytes);
    return bytes;
  }

 private:
  std::string path_;
  std::mutex mutex_;
  std::vector<std::byte> bytes_;
  std::shared_ptr<std::atomic<std::uint64_t>> free_bytes_;
};

}  // namespace

MemoryBlockIo::MemoryBlockIo(FileSystem& files, Options options)
    : files_(files),
      options_(options),
      free_bytes_(std::make_shared<std::atomic<std::uint64_t>>(options.disk_bytes)),
      threads_(2, 2, options.largest_call, [this](const BlockTransfer& transfer) {
        auto& file = static_cast<MemoryBlockFile&>(*transfer.request().file);
        const std::size_t bytes = std::min(transfer.bytes(), options_.short_call_bytes);
        const std::size_t moved = transfer.request().kind == BlockRequest::Kind::kRead
                                      ? file.read_some(transfer.offset(), transfer.data(), bytes)
                                      : file.write_some(transfer.offset(), transfer.data(), bytes);
        return static_cast<ssize_t>(moved);
      }) {}

std::unique_ptr<BlockFile> MemoryBlockIo::open(const std::string& path) {
  return std::make_unique<ReadOnlyFile>(files_.open(path));
}

std::unique_ptr<BlockFile> MemoryBlockIo::create_temporary(const std::string& directory,
                                                           std::uint64_t bytes) {
  if (!files_.is_directory(directory)) {
    throw_file_error(ENOENT, "cannot create a temporary file", directory);
  }
  // More than a disk has is never allocated here either.
  constexpr std::uint64_t kMost = std::uint64_t{1} << 32;
  if (bytes > std::min<std::uint64_t>(*free_bytes_, kMost)) {
    throw_file_error(ENOSPC,
                     "cannot reserve " + format_byte_size(static_cast<std::int64_t>(bytes)) +
                         " for a temporary file",
                     directory);
  }
  *free_bytes_ -= bytes;
  return std::make_unique<TemporaryFile>(join_path(directory, "(temporary file)"), bytes,
                                         free_bytes_);
}

FaultyBlockIo::FaultyBlockIo(BlockIo& base)
    : base_(base),
      failing_(1, 1, std::size_t{1} << 30,
               [this](const BlockTransfer& transfer) { return fail(transfer); }),
      late_(1, 1, std::size_t{1} << 30,
            [this](const BlockTransfer& transfer) { return delay(transfer); }) {}

void FaultyBlockIo::submit(BlockRequest request) {
  const bool is_read = request.kind == BlockRequest::Kind::kRead;
  if (is_read) {
    std::size_t largest = largest_read;
    while (largest < request.bytes && !largest_read.compare_exchange_weak(largest, request.bytes)) {
    }
  }
  const bool concerned = request.file->path().find(faults.of) != std::string::npos;
  const std::int64_t first = is_read ? faults.first_failing_read : faults.first_failing_write;
  const std::int64_t count = concerned ? ++(is_read ? reads : writes) : 0;
  if (stop != nullptr && is_read && count == stop_at_read) *stop = true;
  if (is_read) {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
  } else {
    reads_before_write_ = reads.load();
  }
  if (concerned && count >= first && first > 0) {
    failing_.push(std::move(request));
    return;
  }
  const bool waits = faults.write_takes.count() > 0 || count <= faults.writes_wait_for_read;
  if (concerned && !is_read && waits) {
    late_.push(std::move(request));
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    ++passed_on_;
  }
  request.done = [this, done = std::move(request.done)](std::exception_ptr error) {
    done(std::move(error));
    // Notified under the lock: the destructor may be waiting for this.
    const std::lock_guard lock(mutex_);
    if (--passed_on_ == 0) changed_.notify_all();
  };
  base_.submit(std::move(request));
}

FaultyBlockIo::~FaultyBlockIo() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return passed_on_ == 0; });
}

// What lies in memory at the end is written.
ssize_t FaultyBlockIo::delay(const BlockTransfer& transfer) {
  std::this_thread::sleep_for(faults.write_takes);
  if (faults.writes_wait_for_read > 0) {
    std::unique_lock lock(mutex_);
    const auto has_read = [this] { return reads > reads_before_write_; };
    if (!changed_.wait_for(lock, std::chrono::seconds(10), has_read)) waited_in_vain = true;
  }
  BlockWait wait;
  base_.submit({transfer.request().kind, transfer.request().file, transfer.offset(),
                transfer.data(), transfer.bytes(), wait.completion()});
  wait.wait();
  return static_cast<ssize_t>(transfer.bytes());
}

ssize_t FaultyBlockIo::fail(const BlockTransfer& transfer) {
  const BlockRequest& request = transfer.request();
  const bool is_read = request.kind == BlockRequest::Kind::kRead;
  const bool half = is_read ? faults.short_read : faults.torn_write && !torn_.exchange(true);
  const std::size_t bytes = request.bytes / 2 / kIoAlignment * kIoAlignment;
  if (half && bytes > 0 && transfer.offset() == request.offset) {
    BlockWait wait;
    base_.submit(
        {request.kind, request.file, request.offset, request.data, bytes, wait.completion()});
    wait.wait();
    if (is_read) return static_cast<ssize_t>(bytes);
  }
  if (is_read) return faults.short_read ? 0 : -EIO;
  return -faults.write_error;
}

}  // namespace ooc::test
