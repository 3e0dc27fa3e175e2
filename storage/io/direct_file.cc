#include "storage/io/direct_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "storage/base/byte_size.h"
#include "storage/base/errors.h"
#include "storage/io/file.h"

namespace ooc {
namespace {

// A file without a name, or one whose name is taken away at once where the file system knows none.
int open_nameless(const std::string& directory) {
  const int fd = open_retrying(directory, O_TMPFILE | O_RDWR | O_EXCL);
  if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR)) return fd;
  std::string path = join_path(directory, ".ooc-temporary-XXXXXX");
  const int named = ::mkostemp(path.data(), O_CLOEXEC);
  if (named >= 0) ::unlink(path.c_str());
  return named;
}

int reserve(int fd, std::uint64_t bytes) {
  int error = 0;
  do {
    error = ::posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  } while (error == EINTR);
  return error;
}

}  // namespace

bool DirectFiles::make_direct(int fd, const std::string& path) {
  const int refused = refuse_direct_ != 0                   ? refuse_direct_
                      : ::fcntl(fd, F_SETFL, O_DIRECT) == 0 ? 0
                                                            : errno;
  if (refused == 0) return true;
  if (refused != EINVAL) throw_file_error(refused, "cannot open file for direct I/O", path);
  ::fcntl(fd, F_SETFL, 0);
  if (!said_.exchange(true)) {
    spdlog::info("the file system of {} knows no direct I/O: files go through the page cache",
                 path);
  }
  return false;
}

std::unique_ptr<BlockFile> DirectFiles::open(const std::string& path) {
  // O_NONBLOCK: a pipe that nobody writes to is refused, not waited for.
  FileDescriptor fd(open_retrying(path, O_RDONLY | O_NONBLOCK));
  if (fd.get() < 0) throw_file_error(errno, "cannot open file", path);
  const std::uint64_t bytes = regular_file_bytes(fd.get(), path);
  const bool direct = make_direct(fd.get(), path);
  return std::make_unique<DirectFile>(path, std::move(fd), bytes, direct);
}

std::unique_ptr<BlockFile> DirectFiles::create_temporary(const std::string& directory,
                                                         std::uint64_t bytes) {
  OOC_CHECK(bytes > 0 && bytes % kIoAlignment == 0);
  FileDescriptor fd(open_nameless(directory));
  if (fd.get() < 0) throw_file_error(errno, "cannot create a temporary file", directory);
  if (const int error = reserve(fd.get(), bytes)) {
    throw_file_error(error, "cannot reserve " + format_byte_size(bytes) + " for a temporary file",
                     directory);
  }
  std::string path = join_path(directory, "(temporary file)");
  const bool direct = make_direct(fd.get(), path);
  return std::make_unique<DirectFile>(std::move(path), std::move(fd), bytes, direct);
}

}  // namespace ooc
