#include "storage/io/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/interprocess/detail/os_file_functions.hpp>
#include <boost/interprocess/mapped_region.hpp>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <utility>

#include "storage/base/errors.h"
#include "storage/io/file_descriptor.h"

namespace ooc {
namespace {

namespace fs = std::filesystem;
namespace ipc = boost::interprocess;

// What Boost maps: a descriptor that is open already, so that the bytes mapped are those of the
// file opened even where another has taken its name since.
struct MappableDescriptor {
  int fd;
  ipc::mapping_handle_t get_mapping_handle() const {
    return ipc::ipcdetail::mapping_handle_from_file_handle(fd);
  }
};

class PosixReadableFile final : public ReadableFile {
 public:
  PosixReadableFile(std::string path, int fd)
      : path_(std::move(path)), fd_(fd), size_(regular_file_bytes(fd, path_)) {}

  const std::string& path() const override { return path_; }
  std::uint64_t size() const override { return size_; }

  std::size_t read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    std::size_t done = 0;
    while (done < out.size()) {
      const ssize_t count = ::pread(fd_.get(), out.data() + done, out.size() - done,
                                    static_cast<off_t>(offset + done));
      if (count == 0) break;
      if (count > 0) {
        done += static_cast<std::size_t>(count);
      } else if (errno != EINTR) {
        throw_file_error(errno, "cannot read", path_, offset + done);
      }
    }
    return done;
  }

  std::span<const std::byte> map() override {
    if (size_ == 0) return {};
    const std::lock_guard lock(map_mutex_);
    if (region_.get_address() == nullptr) {
      try {
        region_ = ipc::mapped_region(MappableDescriptor{fd_.get()}, ipc::read_only, 0, size_);
      } catch (const ipc::interprocess_exception& error) {
        throw_file_error(error.get_native_error(), "cannot map file", path_);
      }
    }
    return {static_cast<const std::byte*>(region_.get_address()), size_};
  }

  void release(std::uint64_t offset, std::uint64_t bytes) const override {
    const std::lock_guard lock(map_mutex_);
    if (region_.get_address() == nullptr || bytes == 0) return;
    static const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    const std::uint64_t begin = offset / page * page;
    ::madvise(static_cast<std::byte*>(region_.get_address()) + begin, offset + bytes - begin,
              MADV_DONTNEED);
  }

 private:
  std::string path_;
  FileDescriptor fd_;
  std::uint64_t size_;
  mutable std::mutex map_mutex_;
  ipc::mapped_region region_;
};

class PosixWritableFile final : public WritableFile {
 public:
  // `direct_fd`: the same file, opened to bypass the page cache; -1 where it cannot.
  PosixWritableFile(std::string path, int fd, int direct_fd)
      : path_(std::move(path)), fd_(fd), direct_fd_(direct_fd) {}

  const std::string& path() const override { return path_; }

  // What is large and aligned bypasses the page cache: it would be copied there, page by page, only
  // to be written and never read again.
  void write_at(std::uint64_t offset, std::span<const std::byte> data) override {
    const bool aligned = offset % kDirectAlignment == 0 &&
                         reinterpret_cast<std::uintptr_t>(data.data()) % kDirectAlignment == 0;
    if (aligned && data.size() >= kLeastDirectBytes && direct_fd_.get() >= 0) {
      const std::size_t body = data.size() / kDirectAlignment * kDirectAlignment;
      const std::size_t done = write_some(direct_fd_.get(), offset, data.first(body));
      // The rest goes the other way: a tail, or what this file system takes in larger units only.
      offset += done;
      data = data.subspan(done);
    }
    const std::size_t done = write_some(fd_.get(), offset, data);
    if (done < data.size()) throw_file_error(EINVAL, "cannot write", path_, offset + done);
  }

  void truncate(std::uint64_t bytes) override {
    while (::ftruncate(fd_.get(), static_cast<off_t>(bytes)) != 0) {
      if (errno != EINTR) throw_file_error(errno, "cannot shorten", path_);
    }
  }

  void sync() override {
    while (::fsync(fd_.get()) != 0) {
      if (errno != EINTR) throw_file_error(errno, "cannot sync", path_);
    }
  }

  void close() override {
    if (direct_fd_.get() >= 0) direct_fd_.close();
    if (fd_.get() >= 0 && fd_.close() != 0 && errno != EINTR) {
      throw_file_error(errno, "cannot close", path_);
    }
  }

 private:
  static constexpr std::size_t kDirectAlignment = 4096;
  static constexpr std::size_t kLeastDirectBytes = 1 << 20;

  // All of `data`, or less where the descriptor does not take such a request (EINVAL).
  std::size_t write_some(int fd, std::uint64_t offset, std::span<const std::byte> data) {
    std::size_t done = 0;
    while (done < data.size()) {
      const ssize_t count =
          ::pwrite(fd, data.data() + done, data.size() - done, static_cast<off_t>(offset + done));
      if (count > 0) {
        done += static_cast<std::size_t>(count);
      } else if (count < 0 && errno == EINVAL) {
        break;
      } else if (count == 0 || errno != EINTR) {
        throw_file_error(count == 0 ? EIO : errno, "cannot write", path_, offset + done);
      }
    }
    return done;
  }

  std::string path_;
  FileDescriptor fd_;
  FileDescriptor direct_fd_;
};

class PosixFileLock final : public FileLock {
 public:
  explicit PosixFileLock(int fd) : fd_(fd) {}

 private:
  FileDescriptor fd_;  // closing it gives the lock back
};

// Whether `path` still names the open file: whoever held its lock before may have removed it.
bool is_named(int fd, const std::string& path) {
  struct stat open {
  }, named{};
  return ::fstat(fd, &open) == 0 && ::stat(path.c_str(), &named) == 0 &&
         open.st_ino == named.st_ino && open.st_dev == named.st_dev;
}

class PosixFileSystem final : public FileSystem {
 public:
  std::unique_ptr<ReadableFile> open(const std::string& path) override {
    // O_NONBLOCK: a pipe that nobody writes to is refused, not waited for.
    const int fd = open_retrying(path, O_RDONLY | O_NONBLOCK);
    if (fd < 0) throw_file_error(errno, "cannot open file", path);
    return std::make_unique<PosixReadableFile>(path, fd);
  }

  std::unique_ptr<WritableFile> create(const std::string& path) override {
    const int fd = open_retrying(path, O_WRONLY | O_CREAT | O_TRUNC);
    if (fd < 0 && errno == ENOENT) {
      throw IoError("cannot create file: its directory does not exist", path, "create it first");
    }
    if (fd < 0) throw_file_error(errno, "cannot create file", path);
    const int direct = open_retrying(path, O_WRONLY | O_DIRECT);  // EINVAL where that is unknown
    return std::make_unique<PosixWritableFile>(path, fd, direct);
  }

  std::unique_ptr<WritableFile> update(const std::string& path) override {
    const int fd = open_retrying(path, O_WRONLY);
    if (fd < 0) throw_file_error(errno, "cannot open file to write", path);
    return std::make_unique<PosixWritableFile>(path, fd, -1);
  }

  bool exists(const std::string& path) override {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (status.type() == fs::file_type::none)
      throw_file_error(error.value(), "cannot look at", path);
    return fs::exists(status);
  }

  bool is_directory(const std::string& path) override {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (status.type() == fs::file_type::none)
      throw_file_error(error.value(), "cannot look at", path);
    return fs::is_directory(status);
  }

  std::vector<std::string> list(const std::string& directory) override {
    std::vector<std::string> names;
    std::error_code error;
    fs::directory_iterator entry(directory, error);
    while (!error && entry != fs::directory_iterator()) {
      names.push_back(entry->path().filename().string());
      entry.increment(error);
    }
    if (error) throw_file_error(error.value(), "cannot list directory", directory);
    std::sort(names.begin(), names.end());
    return names;
  }

  void create_directories(const std::string& path) override {
    std::error_code error;
    fs::create_directories(path, error);
    if (!error && !fs::is_directory(path, error) && !error) error.assign(ENOTDIR, error.category());
    if (error) throw_file_error(error.value(), "cannot create directory", path);
  }

  void rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) {
      throw_file_error(errno, "cannot rename to " + to, from);
    }
  }

  void exchange(const std::string& a, const std::string& b) override {
    if (::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0) return;
    if (errno == EINVAL || errno == ENOSYS) {
      throw IoError("this file system cannot swap two names in one step", a,
                    "remove or rename " + b + " first");
    }
    throw_file_error(errno, "cannot swap with " + b, a);
  }

  void remove_all(const std::string& path) override {
    std::error_code error;
    fs::remove_all(path, error);
    if (error) throw_file_error(error.value(), "cannot remove", path);
  }

  std::unique_ptr<FileLock> lock(const std::string& path) override {
    const int fd = open_retrying(path, O_RDWR | O_CREAT);
    if (fd < 0) throw_file_error(errno, "cannot create file", path);
    auto lock = std::make_unique<PosixFileLock>(fd);
    while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return nullptr;
      if (errno == EOPNOTSUPP || errno == ENOSYS || errno == ENOLCK) return lock;
      if (errno != EINTR) throw_file_error(errno, "cannot lock", path);
    }
    return is_named(fd, path) ? std::move(lock) : nullptr;
  }

  void sync_directory(const std::string& path) override {
    const FileDescriptor fd(open_retrying(path, O_RDONLY | O_DIRECTORY));
    if (fd.get() < 0) throw_file_error(errno, "cannot sync directory", path);
    // Some network file systems know no fsync of a directory and say EINVAL.
    while (::fsync(fd.get()) != 0 && errno != EINVAL) {
      if (errno != EINTR) throw_file_error(errno, "cannot sync directory", path);
    }
  }
};

// Removes what a failed write_file_atomically() leaves.
class TemporaryName {
 public:
  TemporaryName(FileSystem& files, std::string path) : files_(files), path_(std::move(path)) {}
  TemporaryName(const TemporaryName&) = delete;
  TemporaryName& operator=(const TemporaryName&) = delete;
  ~TemporaryName() {
    if (renamed_) return;
    try {
      files_.remove_all(path_);
    } catch (const Error&) {  // the error on its way out is the one to report
    }
  }
  const std::string& path() const { return path_; }
  void rename_to(const std::string& target) {
    files_.rename(path_, target);
    renamed_ = true;
  }

 private:
  FileSystem& files_;
  std::string path_;
  bool renamed_ = false;
};

std::string_view remedy_for(int error_number) {
  switch (error_number) {
    case ENOSPC:
      return "free some space or write to another disk";
    case EDQUOT:
      return "free some space, have the quota raised, or write to another disk";
    case EFBIG:
      return "raise the limit on file sizes (ulimit -f) or write to another file system";
    case EACCES:
    case EPERM:
    case EROFS:
      return "check the permissions of the file and of its directory";
    case EMFILE:
    case ENFILE:
      return "raise the limit on open files (ulimit -n)";
    case ENOENT:
    case ENOTDIR:
      return "check the path";
    case EIO:
      return "check the disk and the kernel's log";
    default:
      return "";
  }
}

}  // namespace

void throw_file_error(int error_number, std::string_view action, const std::string& path,
                      std::optional<std::uint64_t> offset) {
  const bool full = error_number == ENOSPC || error_number == EDQUOT;
  const std::string what =
      fmt::format("{}: {}", action,
                  full ? std::string("no space left on device")
                       : std::error_code(error_number, std::generic_category()).message());
  const std::string where = offset ? fmt::format("{} at byte {}", path, *offset) : path;
  if (error_number == ENOENT || error_number == ENOTDIR || error_number == EISDIR) {
    throw DataError(what, where, remedy_for(error_number));
  }
  throw IoError(what, where, remedy_for(error_number));
}

void read_exact(const ReadableFile& file, std::uint64_t offset, std::span<std::byte> out) {
  std::size_t done = 0;
  while (done < out.size()) {
    const std::size_t count = file.read_at(offset + done, out.subspan(done));
    if (count == 0) {
      throw DataError(fmt::format("truncated file: {} bytes wanted, {} there", out.size(), done),
                      fmt::format("{} at byte {}", file.path(), offset),
                      "the file is damaged: make it again");
    }
    done += count;
  }
}

FileSystem& posix_file_system() {
  static PosixFileSystem files;
  return files;
}

void write_file_atomically(FileSystem& files, const std::string& path,
                           std::span<const std::byte> data) {
  TemporaryName temporary(files, path + ".tmp");
  const std::unique_ptr<WritableFile> file = files.create(temporary.path());
  file->write_at(0, data);
  file->sync();
  file->close();
  temporary.rename_to(path);
  files.sync_directory(parent_path(path));
}

std::vector<std::byte> read_file(FileSystem& files, const std::string& path) {
  const std::unique_ptr<ReadableFile> file = files.open(path);
  std::vector<std::byte> bytes(file->size());
  read_exact(*file, 0, bytes);
  return bytes;
}

std::string join_path(const std::string& directory, const std::string& name) {
  if (directory.empty()) return name;
  return directory.back() == '/' ? directory + name : directory + "/" + name;
}

std::string parent_path(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

}  // namespace ooc
