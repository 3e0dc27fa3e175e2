#include "storage/io/block_transfer.h"

#include <catch2/catch.hpp>
#include <cerrno>

#include "tests/support/aligned_buffer.h"
#include "tests/support/fake_block_io.h"
#include "tests/support/fake_file_system.h"
#include "tests/support/input_files.h"

namespace ooc {
namespace {

using test::AlignedBuffer;
using test::error_of;

// A request without a disk: what each call asks for, and what the completion got.
struct Fixture {
  test::MemoryFileSystem files;
  test::MemoryBlockIo io{files};
  std::unique_ptr<BlockFile> file = io.create_temporary("/", 1 << 20);
  AlignedBuffer buffer{1 << 20};
  std::exception_ptr error;
  bool completed = false;

  BlockTransfer transfer(BlockRequest::Kind kind, std::uint64_t offset, std::size_t bytes,
                         std::size_t largest_call = std::size_t{1} << 30) {
    return BlockTransfer({kind, file.get(), offset, buffer.data(), bytes,
                          [this](std::exception_ptr e) {
                            error = e;
                            completed = true;
                          }},
                         largest_call);
  }
  template <class E>
  std::string error_text() {
    return error_of<E>([&] {
      if (error) std::rethrow_exception(error);
    });
  }
};

constexpr auto kRead = BlockRequest::Kind::kRead;
constexpr auto kWrite = BlockRequest::Kind::kWrite;

}  // namespace

TEST_CASE("block_transfer: whole units are asked for, and enough is enough") {
  Fixture f;
  BlockTransfer read = f.transfer(kRead, 8192, 5000);
  CHECK(read.offset() == 8192);
  CHECK(read.data() == f.buffer.data());
  CHECK(read.bytes() == 8192);
  CHECK(read.advance(5000));  // the file's end: all that was wanted is there
  read.complete();
  CHECK(f.completed);
  CHECK(f.error == nullptr);
}

TEST_CASE("block_transfer: a short read is asked for again from the last whole unit") {
  Fixture f;
  BlockTransfer read = f.transfer(kRead, 4096, 20000);
  CHECK_FALSE(read.advance(4096 + 100));
  CHECK(read.offset() == 8192);
  CHECK(read.data() == f.buffer.data() + 4096);
  CHECK(read.bytes() == 16384);
  CHECK_FALSE(read.advance(8192));
  CHECK(read.offset() == 4096 + 12288);
  CHECK(read.bytes() == 8192);
  CHECK(read.advance(20000 - 12288));
}

TEST_CASE("block_transfer: interrupted and refused calls are made again as they were") {
  Fixture f;
  for (const auto kind : {kRead, kWrite}) {
    BlockTransfer transfer = f.transfer(kind, 0, 8192);
    CHECK_FALSE(transfer.advance(-EINTR));
    CHECK_FALSE(transfer.advance(-EAGAIN));
    CHECK(transfer.offset() == 0);
    CHECK(transfer.bytes() == 8192);
    CHECK(transfer.advance(8192));
    transfer.complete();
    CHECK(f.error == nullptr);
  }
}

TEST_CASE("block_transfer: large requests go in calls of the largest size") {
  Fixture f;
  BlockTransfer read = f.transfer(kRead, 0, 10000, 4096);
  CHECK(read.bytes() == 4096);
  CHECK_FALSE(read.advance(4096));
  CHECK_FALSE(read.advance(4096));
  CHECK(read.offset() == 8192);
  CHECK(read.bytes() == 4096);
  CHECK(read.advance(10000 - 8192));
}

TEST_CASE("block_transfer: a file that ends before is truncated, at the end or within a unit") {
  for (const std::size_t there : {4096, 5000}) {
    Fixture f;
    BlockTransfer read = f.transfer(kRead, 4096, 9000);
    CHECK_FALSE(read.advance(static_cast<ssize_t>(there)));
    CHECK(read.advance(static_cast<ssize_t>(there - there / 4096 * 4096)));
    read.complete();
    CHECK(f.error_text<DataError>() ==
          "truncated file: 9000 bytes wanted, " + std::to_string(there) +
              " there, /(temporary file) at byte 4096; the file is damaged: make it again");
  }
}

TEST_CASE("block_transfer: an error names file and offset of what failed") {
  Fixture f;
  BlockTransfer read = f.transfer(kRead, 4096, 20000);
  CHECK_FALSE(read.advance(8192));
  CHECK(read.advance(-EIO));
  read.complete();
  CHECK(f.error_text<IoError>() ==
        "cannot read: Input/output error, /(temporary file) at byte 12288; check the disk and the "
        "kernel's log");
  BlockTransfer write = f.transfer(kWrite, 0, 4096);
  CHECK(write.advance(-ENOSPC));
  write.complete();
  CHECK_THAT(f.error_text<IoError>(),
             Catch::Matchers::Contains("cannot write: no space left on device, /(temporary file) "
                                       "at byte 0"));
}

TEST_CASE("block_transfer: a write is whole only with its last unit, and never stands still") {
  Fixture f;
  BlockTransfer write = f.transfer(kWrite, 0, 5000);
  CHECK_FALSE(write.advance(5000));  // the unit's rest is missing
  CHECK(write.offset() == 4096);
  CHECK(write.advance(904));  // no further than before
  write.complete();
  CHECK_THAT(f.error_text<IoError>(), Catch::Matchers::Contains("no space left on device"));

  BlockTransfer nothing = f.transfer(kWrite, 0, 4096);
  CHECK(nothing.advance(0));
  nothing.complete();
  CHECK_THAT(f.error_text<IoError>(), Catch::Matchers::Contains("no space left on device"));
}

}  // namespace ooc
