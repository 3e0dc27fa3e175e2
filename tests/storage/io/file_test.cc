#include "storage/io/file.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstring>
#include <string>

#include "storage/base/errors.h"
#include "tests/support/fake_file_system.h"

namespace ooc {
namespace {

using test::FaultyFileSystem;
using test::MemoryFileSystem;
using test::TemporaryDirectory;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string content(FileSystem& files, const std::string& path) {
  return text_of(read_file(files, path));
}

void write(FileSystem& files, const std::string& path, std::string_view text) {
  const auto file = files.create(path);
  file->write_at(0, bytes_of(text));
  file->close();
}

// Message of the E that `call` throws.
template <class E, class Call>
std::string message_of(Call&& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  FAIL("nothing was thrown");
  return "";
}

// Each implementation with a place to write.
struct Posix {
  TemporaryDirectory directory;
  FileSystem& files = posix_file_system();
  std::string root = directory.path();
};
struct Memory {
  MemoryFileSystem memory;
  FileSystem& files = memory;
  std::string root = ".";
};
// Without faults set it must behave as what it wraps.
struct Faultless {
  MemoryFileSystem memory;
  FaultyFileSystem faulty{memory};
  FileSystem& files = faulty;
  std::string root = "/";
};

using Contains = Catch::Matchers::StdString::ContainsMatcher;
Contains contains(const std::string& text) { return Catch::Matchers::Contains(text); }

}  // namespace

TEMPLATE_TEST_CASE("file: what was written is read, in any order, with holes of zero", "", Posix,
                   Memory, Faultless) {
  TestType fixture;
  FileSystem& files = fixture.files;
  const std::string path = join_path(fixture.root, "a");
  const auto out = files.create(path);
  CHECK(out->path() == path);
  out->write_at(6, bytes_of("world"));
  out->write_at(0, bytes_of("hell"));
  out->write_at(3, bytes_of(""));
  out->sync();
  out->close();

  const auto in = files.open(path);
  CHECK(in->path() == path);
  REQUIRE(in->size() == 11);
  CHECK(content(files, path) == std::string("hell\0\0world", 11));
  CHECK(text_of(in->map()) == std::string("hell\0\0world", 11));
  CHECK(in->map().data() == in->map().data());

  std::byte buffer[8];
  CHECK(in->read_at(8, buffer) == 3);
  CHECK(text_of({buffer, 3}) == "rld");
  CHECK(in->read_at(11, buffer) == 0);
  CHECK(in->read_at(1000, buffer) == 0);
  CHECK_THAT(message_of<DataError>([&] { read_exact(*in, 8, buffer); }),
             contains("truncated file: 8 bytes wanted, 3 there") && contains(path + " at byte 8"));
}

TEMPLATE_TEST_CASE("file: an empty file maps to nothing, a created one is truncated", "", Posix,
                   Memory, Faultless) {
  TestType fixture;
  const std::string path = join_path(fixture.root, "a");
  write(fixture.files, path, "something");
  const auto before = fixture.files.open(path);
  fixture.files.create(path)->close();
  const auto in = fixture.files.open(path);
  CHECK(in->size() == 0);
  CHECK(in->map().empty());
  CHECK(read_file(fixture.files, path).empty());
}

TEMPLATE_TEST_CASE("file: missing files and directories in a file's place are data errors", "",
                   Posix, Memory, Faultless) {
  TestType fixture;
  FileSystem& files = fixture.files;
  const std::string missing = join_path(fixture.root, "missing");
  CHECK_FALSE(files.exists(missing));
  CHECK_FALSE(files.is_directory(missing));
  CHECK_THAT(message_of<DataError>([&] { files.open(missing); }),
             contains("No such file or directory") && contains(missing));
  CHECK_THROWS_AS(files.open(fixture.root), DataError);
  CHECK_THROWS_AS(files.list(missing), DataError);
  CHECK_THROWS_AS(files.rename(missing, join_path(fixture.root, "b")), DataError);
  CHECK_THAT(message_of<IoError>([&] { files.create(join_path(missing, "a")); }),
             contains("its directory does not exist"));
  write(files, join_path(fixture.root, "file"), "x");
  CHECK_THROWS_AS(files.list(join_path(fixture.root, "file")), DataError);
  CHECK_THROWS_AS(files.create_directories(join_path(fixture.root, "file/below")), DataError);
  CHECK_THROWS_AS(files.create(fixture.root), DataError);
}

TEMPLATE_TEST_CASE("file: directories are created, listed, moved and removed as trees", "", Posix,
                   Memory, Faultless) {
  TestType fixture;
  FileSystem& files = fixture.files;
  const auto at = [&](const std::string& name) { return join_path(fixture.root, name); };
  files.create_directories(at("d/e"));
  files.create_directories(at("d/e"));
  CHECK(files.is_directory(at("d")));
  write(files, at("d/z"), "z");
  write(files, at("d/e/y"), "y");
  write(files, at("d2"), "not below d");
  CHECK(files.list(at("d")) == std::vector<std::string>{"e", "z"});
  CHECK_FALSE(files.is_directory(at("d/z")));
  CHECK(files.exists(at("d/z")));

  files.rename(at("d"), at("moved"));
  CHECK_FALSE(files.exists(at("d/e/y")));
  CHECK(content(files, at("moved/e/y")) == "y");
  files.sync_directory(fixture.root);

  files.remove_all(at("moved"));
  files.remove_all(at("moved"));
  CHECK_FALSE(files.exists(at("moved/e")));
  CHECK(files.list(fixture.root) == std::vector<std::string>{"d2"});
}

TEMPLATE_TEST_CASE("file: rename replaces a file, never a filled directory", "", Posix, Memory,
                   Faultless) {
  TestType fixture;
  FileSystem& files = fixture.files;
  const auto at = [&](const std::string& name) { return join_path(fixture.root, name); };
  write(files, at("new"), "new");
  write(files, at("old"), "old");
  const auto reader = files.open(at("old"));
  files.rename(at("new"), at("old"));
  CHECK(content(files, at("old")) == "new");
  CHECK_FALSE(files.exists(at("new")));
  CHECK(text_of(reader->map()) == "old");  // an open file keeps its bytes, mapped late or not

  files.create_directories(at("filled"));
  write(files, at("filled/a"), "a");
  files.create_directories(at("other"));
  CHECK_THROWS_AS(files.rename(at("other"), at("filled")), IoError);
  CHECK(content(files, at("filled/a")) == "a");
}

TEMPLATE_TEST_CASE("file: exchange swaps two trees and needs both", "", Posix, Memory, Faultless) {
  TestType fixture;
  FileSystem& files = fixture.files;
  const auto at = [&](const std::string& name) { return join_path(fixture.root, name); };
  files.create_directories(at("a"));
  files.create_directories(at("b"));
  write(files, at("a/old"), "1");
  write(files, at("b/new"), "2");
  files.exchange(at("a"), at("b"));
  CHECK(files.list(at("a")) == std::vector<std::string>{"new"});
  CHECK(files.list(at("b")) == std::vector<std::string>{"old"});
  CHECK_THROWS_AS(files.exchange(at("a"), at("missing")), DataError);
  CHECK(files.list(at("a")) == std::vector<std::string>{"new"});
}

TEST_CASE("file: a pipe is refused at once, not waited for") {
  const TemporaryDirectory directory;
  const std::string path = directory / "pipe";
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  const auto message = message_of<DataError>([&] { posix_file_system().open(path); });
  CHECK(message.starts_with("not a regular file (a pipe or a device), " + path + "; "));
  CHECK_THROWS_AS(posix_file_system().open("/dev/zero"), DataError);
}

TEMPLATE_TEST_CASE("file: a lock is held by one at a time, and given back", "", Posix, Memory,
                   Faultless) {
  TestType place;
  const std::string path = join_path(place.root, "lock");
  auto first = place.files.lock(path);
  REQUIRE(first != nullptr);
  CHECK(place.files.exists(path));
  CHECK(place.files.lock(path) == nullptr);
  first.reset();
  CHECK(place.files.lock(path) != nullptr);
}

TEMPLATE_TEST_CASE("file: an atomic write replaces the file and leaves no other", "", Posix, Memory,
                   Faultless) {
  TestType fixture;
  const std::string path = join_path(fixture.root, "a");
  write_file_atomically(fixture.files, path, bytes_of("one"));
  write_file_atomically(fixture.files, path, bytes_of("two"));
  CHECK(content(fixture.files, path) == "two");
  CHECK(fixture.files.list(fixture.root) == std::vector<std::string>{"a"});
}

TEMPLATE_TEST_CASE("file: an atomic write that fails keeps the old bytes and leaves no other", "",
                   Posix, Memory) {
  TestType fixture;
  FaultyFileSystem faulty(fixture.files);
  const std::string path = join_path(fixture.root, "a");
  write_file_atomically(faulty, path, bytes_of("old"));
  faulty.faults.torn_write = GENERATE(false, true);
  SECTION("the write") { faulty.faults.first_failing_write = 2; }
  SECTION("the sync") { faulty.faults.first_failing_sync = 3; }
  SECTION("the rename") { faulty.faults.first_failing_rename = 2; }
  CHECK_THROWS_AS(write_file_atomically(faulty, path, bytes_of("new")), IoError);
  CHECK(content(fixture.files, path) == "old");
  CHECK(fixture.files.list(fixture.root) == std::vector<std::string>{"a"});
}

TEST_CASE("file: read_exact puts short reads together") {
  MemoryFileSystem memory;
  write(memory, "a", "hello world");
  FaultyFileSystem faulty(memory);
  faulty.faults.short_read_bytes = 3;
  CHECK(content(faulty, "a") == "hello world");
  CHECK(faulty.counts.reads == 4);
  CHECK(faulty.counts.largest_read == 11);
}

TEST_CASE("file: faults carry path, offset, reason and what to do") {
  MemoryFileSystem memory;
  FaultyFileSystem faulty(memory);
  const auto out = faulty.create("a");
  out->write_at(0, bytes_of("0123"));
  faulty.faults.first_failing_write = 2;
  faulty.faults.torn_write = true;
  CHECK_THAT(message_of<IoError>([&] { out->write_at(4, bytes_of("4567")); }),
             Catch::Equals("cannot write: no space left on device, a at byte 4; free some space or "
                           "write to another disk"));
  CHECK(content(memory, "a") == "012345");
  CHECK_THROWS_AS(out->write_at(0, bytes_of("x")), IoError);  // the disk stays full
  CHECK(content(memory, "a") == "012345");

  faulty.faults.write_error = EDQUOT;
  CHECK_THAT(message_of<IoError>([&] { out->write_at(4, bytes_of("4567")); }),
             contains("no space left on device") && contains("quota"));
  faulty.faults.first_failing_read = 1;
  CHECK_THAT(message_of<IoError>([&] { content(faulty, "a"); }),
             contains("cannot read: Input/output error, a at byte 0"));
}

TEST_CASE("file: a refused write of the operating system names path and offset") {
  TemporaryDirectory directory;
  // The signal would end the process before write_at() could say anything.
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit old_limit{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &old_limit) == 0);
  const rlimit small{4096, old_limit.rlim_max};
  const auto file = posix_file_system().create(directory / "a");
  const std::vector<std::byte> data(6000);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const std::string message = message_of<IoError>([&] { file->write_at(0, data); });
  ::setrlimit(RLIMIT_FSIZE, &old_limit);
  std::signal(SIGXFSZ, old_handler);
  // 4096 bytes fit: a short write, whose rest then fails.
  CHECK_THAT(message, contains("cannot write: File too large, " + (directory / "a at byte 4096")));
  CHECK_THAT(message, contains("ulimit -f"));
}

TEST_CASE("file: a full disk of the operating system says so") {
  if (!posix_file_system().exists("/dev/full")) return;
  const auto file = posix_file_system().create("/dev/full");
  CHECK_THAT(message_of<IoError>([&] { file->write_at(0, bytes_of("x")); }),
             contains("no space left on device, /dev/full at byte 0; free some space"));
}

TEST_CASE("file: paths are joined and taken apart at the last slash") {
  CHECK(join_path("a", "b") == "a/b");
  CHECK(join_path("a/", "b") == "a/b");
  CHECK(join_path("", "b") == "b");
  CHECK(join_path("/", "b") == "/b");
  CHECK(parent_path("a/b/c") == "a/b");
  CHECK(parent_path("c") == ".");
  CHECK(parent_path("/c") == "/");
  CHECK(base_name("a/b/c") == "c");
  CHECK(base_name("c") == "c");
}

}  // namespace ooc
