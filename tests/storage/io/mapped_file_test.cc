// Files that a BlockIo maps: used where they lie, and what becomes of them when pages are gone.
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "storage/base/errors.h"
#include "storage/io/block_file.h"
#include "storage/io/file.h"
#include "tests/support/aligned_buffer.h"
#include "tests/support/fake_file_system.h"
#include "tests/support/input_files.h"

namespace ooc {
namespace {

using test::error_of;
using test::fill_pattern;
using test::pattern_mismatch;
using test::TemporaryDirectory;

struct Files {
  TemporaryDirectory directory;
  std::unique_ptr<BlockIo> io = make_block_io({.kind = BlockIoKind::kMapped});

  static void put_pattern(const std::string& path, std::size_t bytes) {
    std::vector<std::byte> content(bytes);
    fill_pattern(content, 0);
    const auto file = posix_file_system().create(path);
    file->write_at(0, content);
    file->close();
  }
};

// Of the mapping that begins there, in this process's memory.
std::int64_t resident_bytes(const std::byte* mapping) {
  std::ifstream file("/proc/self/smaps");
  std::ostringstream begin;
  begin << std::hex << reinterpret_cast<std::uintptr_t>(mapping) << '-';
  bool found = false;
  for (std::string line; std::getline(file, line);) {
    found |= line.starts_with(begin.str());
    if (found && line.starts_with("Rss:")) return 1024 * std::stoll(line.substr(4));
  }
  return -1;
}

}  // namespace

TEST_CASE("mapped_file: a mapped file is read where it lies, and comes back after its release") {
  Files f;
  const std::string path = f.directory / "a";
  f.put_pattern(path, (1 << 20) + 1234);
  const auto file = f.io->open(path);
  const std::span<const std::byte> mapping = file->mapping();
  REQUIRE(mapping.size() == file->size());
  auto* const place = const_cast<std::byte*>(mapping.data()) + 8192;
  for (int round = 0; round < 2; ++round) {
    BlockWait wait;
    f.io->submit({BlockRequest::Kind::kRead, file.get(), 8192, place, (1 << 20) - 8192 + 1234,
                  wait.completion()});
    wait.wait();
    CHECK(pattern_mismatch(mapping.subspan(8192), 8192) == mapping.size() - 8192);
    CHECK(resident_bytes(mapping.data()) >= (1 << 20) - 8192);
    file->release(8192, (1 << 20) - 8192 + 1234);
    CHECK(resident_bytes(mapping.data()) == 0);
  }
  CHECK(f.io->create_temporary(f.directory.path(), 4096)->mapping().empty());
}

TEST_CASE("mapped_file: pages of a mapping that are gone are an error, not the end") {
  Files f;
  const std::string path = f.directory / "a";
  f.put_pattern(path, 1 << 20);
  const auto file = f.io->open(path);
  REQUIRE(::truncate(path.c_str(), 8192) == 0);
  auto* const place = const_cast<std::byte*>(file->mapping().data());
  BlockWait wait;
  f.io->submit(
      {BlockRequest::Kind::kRead, file.get(), 4096, place + 4096, 512 << 10, wait.completion()});
  CHECK_THAT(error_of<IoError>([&] { wait.wait(); }),
             Catch::Matchers::Contains(path) && Catch::Matchers::Contains("at byte 4096"));
}

TEST_CASE("mapped_file: touching a page of a mapping that is gone ends the process with a line") {
  Files f;
  const std::string path = f.directory / "a";
  f.put_pattern(path, 1 << 20);
  const auto file = f.io->open(path);
  REQUIRE(::truncate(path.c_str(), 8192) == 0);
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    static_cast<void>(*const_cast<const volatile std::byte*>(file->mapping().data() + 65536));
    ::_exit(7);
  }
  ::close(ends[1]);
  std::string line(4096, '\0');
  const ssize_t bytes = ::read(ends[0], line.data(), line.size());
  ::close(ends[0]);
  line.resize(static_cast<std::size_t>(std::max<ssize_t>(bytes, 0)));
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 1);
  CHECK_THAT(line, Catch::Matchers::Contains("error: cannot read a mapped file") &&
                       Catch::Matchers::Contains(path));
}

}  // namespace ooc
