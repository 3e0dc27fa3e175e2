#include "storage/io/block_file.h"

#include <fcntl.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <random>
#include <sstream>
#include <thread>

#include "storage/base/errors.h"
#include "tests/support/aligned_buffer.h"
#include "tests/support/fake_block_io.h"
#include "tests/support/fake_file_system.h"
#include "tests/support/input_files.h"

namespace ooc {
namespace {

using test::AlignedBuffer;
using test::error_of;
using test::FaultyBlockIo;
using test::fill_pattern;
using test::is_zero;
using test::MemoryBlockIo;
using test::MemoryFileSystem;
using test::pattern_mismatch;
using test::TemporaryDirectory;

// Each implementation with a place for files. Calls are cut at 64 KiB, so that larger requests
// are continued as after short reads and writes.
BlockIoOptions cut_calls(BlockIoOptions options) {
  options.largest_call = 64 << 10;
  return options;
}
struct OnDisk {
  explicit OnDisk(const BlockIoOptions& options) : io(make_block_io(cut_calls(options))) {}
  TemporaryDirectory directory;
  FileSystem& files = posix_file_system();
  std::string root = directory.path();
  std::unique_ptr<BlockIo> io;
};
struct Best : OnDisk {  // io_uring, unless it is refused here
  Best() : OnDisk({}) {}
};
struct BestOneByOne : OnDisk {
  BestOneByOne() : OnDisk({.depth = 1}) {}
};
struct BestFewBytes : OnDisk {  // two calls at once, or one
  BestFewBytes() : OnDisk({.bytes_at_once = (64 << 10) + 1}) {}
};
struct Threads : OnDisk {
  Threads() : OnDisk({.kind = BlockIoKind::kThreads, .depth = 4}) {}
};
struct Buffered : OnDisk {
  Buffered() : OnDisk({.refuse_direct = EINVAL}) {}
};
struct BufferedThreads : OnDisk {
  BufferedThreads() : OnDisk({.kind = BlockIoKind::kThreads, .refuse_direct = EINVAL}) {}
};
struct Mapped : OnDisk {
  Mapped() : OnDisk({.kind = BlockIoKind::kMapped}) {}
};
struct InMemory {
  MemoryFileSystem memory;
  FileSystem& files = memory;
  std::string root = "/";
  std::unique_ptr<BlockIo> io = std::make_unique<MemoryBlockIo>(files);
};
struct ShortCalls {  // every call moves 5000 bytes at most, so most end within a unit
  MemoryFileSystem memory;
  FileSystem& files = memory;
  std::string root = "/";
  std::unique_ptr<BlockIo> io =
      std::make_unique<MemoryBlockIo>(files, MemoryBlockIo::Options{.short_call_bytes = 5000});
};
struct Faultless {
  MemoryFileSystem memory;
  FileSystem& files = memory;
  std::string root = "/";
  MemoryBlockIo base{memory};
  std::unique_ptr<BlockIo> io = std::make_unique<FaultyBlockIo>(base);
};
#define OOC_WRITING                                                                           \
  Best, BestOneByOne, BestFewBytes, Threads, Buffered, BufferedThreads, InMemory, ShortCalls, \
      Faultless, Mapped

constexpr auto kRead = BlockRequest::Kind::kRead;
constexpr auto kWrite = BlockRequest::Kind::kWrite;

void put_pattern(FileSystem& files, const std::string& path, std::size_t bytes) {
  std::vector<std::byte> content(bytes);
  fill_pattern(content, 0);
  const auto file = files.create(path);
  file->write_at(0, content);
  file->close();
}

void transfer(BlockIo& io, BlockRequest::Kind kind, BlockFile& file, std::uint64_t offset,
              const AlignedBuffer& buffer, std::size_t bytes) {
  BlockWait wait;
  io.submit({kind, &file, offset, buffer.data(), bytes, wait.completion()});
  wait.wait();
}

}  // namespace

TEMPLATE_TEST_CASE("block_file: many reads at once, from many threads, up to an unaligned end", "",
                   OOC_WRITING) {
  TestType f;
  constexpr std::size_t kFileBytes = (1 << 20) + 1234;
  const std::string path = join_path(f.root, "a");
  put_pattern(f.files, path, kFileBytes);
  const auto file = f.io->open(path);
  CHECK(file->path() == path);
  CHECK(file->size() == kFileBytes);

  std::atomic<int> wrong{0};
  const auto read_ranges = [&](unsigned seed) {
    std::mt19937 random(seed);
    std::vector<AlignedBuffer> buffers;
    std::vector<std::pair<std::uint64_t, std::size_t>> ranges;
    BlockWait wait;
    for (int i = 0; i < 40; ++i) {
      const std::uint64_t offset = random() % (kFileBytes / kIoAlignment + 1) * kIoAlignment;
      const std::size_t bytes = 1 + random() % (kFileBytes - offset);
      ranges.emplace_back(offset, bytes);
      buffers.emplace_back(bytes);
      f.io->submit({kRead, file.get(), offset, buffers.back().data(), bytes, wait.completion()});
    }
    wait.wait();
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      const auto [offset, bytes] = ranges[i];
      if (pattern_mismatch(buffers[i].first(bytes), offset) != bytes) ++wrong;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned seed = 1; seed <= 3; ++seed) threads.emplace_back(read_ranges, seed);
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEMPLATE_TEST_CASE("block_file: a file that ends before is truncated", "", OOC_WRITING) {
  TestType f;
  const std::string path = join_path(f.root, "a");
  put_pattern(f.files, path, 10000);
  const auto file = f.io->open(path);
  const AlignedBuffer buffer(8192);
  transfer(*f.io, kRead, *file, 8192, buffer, 10000 - 8192);
  CHECK(pattern_mismatch(buffer.first(1808), 8192) == 1808);
  const auto read = [&](std::uint64_t offset, std::size_t bytes) {
    return error_of<DataError>([&] { transfer(*f.io, kRead, *file, offset, buffer, bytes); });
  };
  CHECK(read(8192, 1809) == "truncated file: 1809 bytes wanted, 1808 there, " + path +
                                " at byte 8192; the file is damaged: make it again");
  CHECK_THAT(read(4096, 8192), Catch::Matchers::Contains("8192 bytes wanted, 5904 there"));
  CHECK_THAT(read(12288, 1), Catch::Matchers::Contains("1 bytes wanted, 0 there"));
}

TEMPLATE_TEST_CASE("block_file: what is missing or no regular file is refused", "", OOC_WRITING) {
  TestType f;
  CHECK_THAT(error_of<DataError>([&] { f.io->open(join_path(f.root, "none")); }),
             Catch::Matchers::Contains("No such file"));
  CHECK_THAT(error_of<DataError>([&] { f.io->open(f.root); }),
             Catch::Matchers::Contains("Is a directory"));
}

TEMPLATE_TEST_CASE("block_file: a temporary file is zero, written, rewritten and read in any order",
                   "", OOC_WRITING) {
  TestType f;
  constexpr std::size_t kUnit = 100 << 10, kUnits = 24;
  const auto file = f.io->create_temporary(f.root, kUnit * kUnits);
  CHECK(file->size() == kUnit * kUnits);
  std::vector<AlignedBuffer> buffers;
  for (std::size_t i = 0; i < kUnits; ++i) buffers.emplace_back(kUnit);
  const auto all = [&](BlockRequest::Kind kind, std::size_t first, std::size_t step) {
    BlockWait wait;
    for (std::size_t i = first; i < kUnits; i += step) {
      f.io->submit({kind, file.get(), (kUnits - 1 - i) * kUnit, buffers[kUnits - 1 - i].data(),
                    kUnit, wait.completion()});
    }
    wait.wait();
  };
  all(kRead, 0, 1);
  for (const AlignedBuffer& buffer : buffers) {
    CHECK(is_zero(buffer.first(kUnit)));
  }
  const auto fill = [&](std::uint64_t version) {
    for (std::size_t i = 0; i < kUnits; ++i) {
      fill_pattern({buffers[i].data(), kUnit}, i * kUnit, version);
    }
  };
  fill(1);
  all(kWrite, 0, 1);
  fill(2);
  all(kWrite, 1, 2);  // every second one again
  for (AlignedBuffer& buffer : buffers) std::memset(buffer.data(), 0, kUnit);
  all(kRead, 0, 1);
  for (std::size_t i = 0; i < kUnits; ++i) {
    const std::uint64_t version = (kUnits - 1 - i) % 2 == 1 ? 2 : 1;
    CHECK(pattern_mismatch(buffers[i].first(kUnit), i * kUnit, version) == kUnit);
  }
}

TEMPLATE_TEST_CASE("block_file: a write takes the buffer up to a whole unit", "", OOC_WRITING) {
  TestType f;
  const auto file = f.io->create_temporary(f.root, 16384);
  AlignedBuffer buffer(8192);
  fill_pattern({buffer.data(), 8192}, 0);
  transfer(*f.io, kWrite, *file, 4096, buffer, 5000);
  const AlignedBuffer back(16384);
  transfer(*f.io, kRead, *file, 0, back, 16384);
  CHECK(back.data()[4095] == std::byte{0});
  CHECK(pattern_mismatch({back.data() + 4096, 8192}, 0) == 8192);
  CHECK(back.data()[4096 + 8192] == std::byte{0});
}

TEMPLATE_TEST_CASE("block_file: a temporary file has no name and leaves nothing", "", OOC_WRITING) {
  TestType f;
  const auto file = f.io->create_temporary(f.root, 8192);
  CHECK(f.files.list(f.root).empty());
  CHECK_THAT(error_of<IoError>([&] { f.io->create_temporary(f.root, std::uint64_t{1} << 62); }),
             Catch::Matchers::StartsWith("cannot reserve 4194304 TiB for a temporary file: "));
  CHECK(f.files.list(f.root).empty());
  CHECK_THAT(error_of<DataError>([&] { f.io->create_temporary(join_path(f.root, "none"), 4096); }),
             Catch::Matchers::Contains("cannot create a temporary file: No such file"));
}

TEMPLATE_TEST_CASE("block_file: completions come from another thread and may submit more", "",
                   OOC_WRITING) {
  TestType f;
  const std::string path = join_path(f.root, "a");
  put_pattern(f.files, path, 1 << 20);
  const auto file = f.io->open(path);
  const AlignedBuffer buffer(4096);
  std::atomic<int> reads{0}, on_this_thread{0};
  const auto self = std::this_thread::get_id();
  BlockIo* const io = f.io.get();
  std::function<void(std::exception_ptr)> next = [&](std::exception_ptr error) {
    if (error || std::this_thread::get_id() == self) ++on_this_thread;
    if (++reads == 50) return;
    io->submit({kRead, file.get(), reads * std::uint64_t{4096}, buffer.data(), 4096, next});
  };
  f.io->submit({kRead, file.get(), 0, buffer.data(), 4096, next});
  f.io.reset();  // returns when the last of the chain has completed
  CHECK(reads == 50);
  CHECK(on_this_thread == 0);
}

TEMPLATE_TEST_CASE("block_file: an error of the kernel names file and offset", "", Best, Threads,
                   Buffered) {
  TestType f;
  // Memory at addresses that nobody maps: a regular file whose reads fail.
  const auto file = f.io->open("/proc/self/mem");
  const AlignedBuffer buffer(4096);
  CHECK(error_of<IoError>([&] { transfer(*f.io, kRead, *file, 4096, buffer, 4096); }) ==
        "cannot read: Input/output error, /proc/self/mem at byte 4096; check the disk and the "
        "kernel's log");
}

TEST_CASE("block_file: the first of many errors is thrown, and the wait can be used again") {
  InMemory f;
  put_pattern(f.files, "/a", 8192);
  const auto file = f.io->open("/a");
  const AlignedBuffer good(4096), bad(4096);
  BlockWait wait;
  f.io->submit({kRead, file.get(), 8192, bad.data(), 1, wait.completion()});
  f.io->submit({kRead, file.get(), 4096, good.data(), 4096, wait.completion()});
  CHECK_THROWS_AS(wait.wait(), DataError);
  CHECK(pattern_mismatch(good.first(4096), 4096) == 4096);
  CHECK_NOTHROW(wait.wait());
}

namespace {

// What is logged while it lives.
class LogCapture {
 public:
  LogCapture() : before_(spdlog::default_logger()) {
    auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(text_);
    auto logger = std::make_shared<spdlog::logger>("test", std::move(sink));
    logger->set_pattern("%l: %v");
    spdlog::set_default_logger(std::move(logger));
  }
  ~LogCapture() { spdlog::set_default_logger(before_); }
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::shared_ptr<spdlog::logger> before_;
};

}  // namespace

TEST_CASE("block_file: where io_uring is refused, threads read, and the log says so once") {
  for (const int error : {EPERM, ENOSYS}) {
    const LogCapture log;
    TemporaryDirectory directory;
    const auto io = make_block_io({.refuse_uring = error});
    CHECK(io->name() == "pread");
    put_pattern(posix_file_system(), directory / "a", 5000);
    const AlignedBuffer buffer(5000);
    transfer(*io, kRead, *io->open(directory / "a"), 0, buffer, 5000);
    CHECK(pattern_mismatch(buffer.first(5000), 0) == 5000);
    CHECK(log.text() ==
          std::string("info: io_uring is refused here (") +
              (error == EPERM ? "Operation not permitted" : "Function not implemented") +
              "): reading and writing with threads\n");
  }
}

TEST_CASE("block_file: files bypass the page cache where their file system lets them") {
  TemporaryDirectory directory;
  put_pattern(posix_file_system(), directory / "a", 5000);
  const std::string path = directory / "a";
  const int here = ::open(path.c_str(), O_RDONLY | O_DIRECT);
  if (here >= 0) ::close(here);
  for (const BlockIoKind kind : {BlockIoKind::kBest, BlockIoKind::kThreads}) {
    const auto io = make_block_io({.kind = kind});
    CHECK(io->open(path)->direct() == (here >= 0));
    CHECK(io->create_temporary(directory.path(), 4096)->direct() == (here >= 0));
  }
}

TEST_CASE("block_file: where direct I/O is unknown, the page cache serves; the log says so once") {
  const LogCapture log;
  TemporaryDirectory directory;
  const auto io = make_block_io({.kind = BlockIoKind::kThreads, .refuse_direct = EINVAL});
  put_pattern(posix_file_system(), directory / "a", 5000);
  CHECK_FALSE(io->open(directory / "a")->direct());
  CHECK_FALSE(io->create_temporary(directory.path(), 4096)->direct());
  CHECK(log.text() == "info: the file system of " + directory / "a" +
                          " knows no direct I/O: files go through the page cache\n");
  const auto refused = make_block_io({.kind = BlockIoKind::kThreads, .refuse_direct = EACCES});
  CHECK_THAT(error_of<IoError>([&] { refused->open(directory / "a"); }),
             Catch::Matchers::StartsWith("cannot open file for direct I/O: Permission denied"));
}

TEST_CASE("block_file: io_uring that is asked for and refused is an error") {
  CHECK_THAT(error_of<IoError>(
                 [] { make_block_io({.kind = BlockIoKind::kUring, .refuse_uring = EPERM}); }),
             Catch::Matchers::Contains("io_uring is refused here (Operation not permitted)") &&
                 Catch::Matchers::Contains("--io threads"));
}

TEST_CASE("block_file: injected faults are reported and leave what they say") {
  InMemory f;
  FaultyBlockIo io(*f.io);
  put_pattern(f.files, "/a", 1 << 16);
  const auto file = io.open("/a");
  const auto out = io.create_temporary("/", 16384);
  AlignedBuffer buffer(16384);
  io.faults = {.first_failing_read = 2};
  transfer(io, kRead, *file, 0, buffer, 4096);
  for (int i = 0; i < 2; ++i) {
    CHECK_THAT(error_of<IoError>([&] { transfer(io, kRead, *file, 4096, buffer, 4096); }),
               Catch::Matchers::Contains("Input/output error, /a at byte 4096"));
  }
  io.faults = {.first_failing_read = 1, .short_read = true};
  CHECK_THAT(error_of<DataError>([&] { transfer(io, kRead, *file, 0, buffer, 16384); }),
             Catch::Matchers::Contains("16384 bytes wanted, 8192 there"));
  CHECK(io.reads == 4);
  CHECK(io.largest_read == 16384);

  fill_pattern({buffer.data(), 16384}, 0);
  io.faults = {.first_failing_write = 1, .torn_write = true};
  CHECK_THAT(error_of<IoError>([&] { transfer(io, kWrite, *out, 0, buffer, 16384); }),
             Catch::Matchers::Contains("no space left on device"));
  io.faults = {};
  const AlignedBuffer back(16384);
  transfer(io, kRead, *out, 0, back, 16384);
  CHECK(pattern_mismatch(back.first(16384), 0) == 8192);  // half of it, then zeros
}

}  // namespace ooc
