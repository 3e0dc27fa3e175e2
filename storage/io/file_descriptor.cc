#include "storage/io/file_descriptor.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "storage/base/errors.h"
#include "storage/io/file.h"

namespace ooc {

FileDescriptor::FileDescriptor(FileDescriptor&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)) {}

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) ::close(fd_);
}

int FileDescriptor::close() { return ::close(std::exchange(fd_, -1)); }

int open_retrying(const std::string& path, int flags) {
  int fd = -1;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

std::uint64_t regular_file_bytes(int fd, const std::string& path) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) throw_file_error(errno, "cannot open file", path);
  if (S_ISDIR(status.st_mode)) throw_file_error(EISDIR, "cannot open file", path);
  if (!S_ISREG(status.st_mode)) {
    throw DataError("not a regular file (a pipe or a device)", path,
                    "save it as a file first: sizes and places must be known");
  }
  return static_cast<std::uint64_t>(status.st_size);
}

}  // namespace ooc
