#include "storage/stores/scratch_tensor.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "storage/format/vertex_tensor.h"
#include "tests/support/aligned_buffer.h"
#include "tests/support/fake_block_io.h"
#include "tests/support/fake_file_system.h"
#include "tests/support/input_files.h"

namespace ooc {
namespace {

using test::AlignedBuffer;
using test::error_of;
using test::fill_pattern;
using test::is_zero;
using test::MemoryBlockIo;
using test::MemoryFileSystem;
using test::pattern_mismatch;
using test::TemporaryDirectory;

struct OnDisk {
  TemporaryDirectory directory;
  std::string root = directory.path();
  FileSystem& files = posix_file_system();
  std::unique_ptr<BlockIo> io = make_block_io();
};
struct InMemory {
  MemoryFileSystem memory;
  std::string root = "/";
  FileSystem& files = memory;
  std::unique_ptr<BlockIo> io =
      std::make_unique<MemoryBlockIo>(files, MemoryBlockIo::Options{.disk_bytes = 1 << 20});
};

std::int64_t io_chunks_of(const ScratchTensor& tensor) {
  return ceil_div(tensor.layout().block_count(), tensor.io_chunk_blocks());
}

std::size_t bytes_of(const ScratchTensor& tensor, std::int64_t io_chunk, std::int64_t slice) {
  return io_chunk_payload_bytes(tensor.layout(), tensor.dtype(), tensor.io_chunk_blocks(), io_chunk,
                                slice);
}

// Visits every I/O chunk of every slice, with a number of its own.
template <class Visit>
void for_each_io_chunk(const ScratchTensor& tensor, Visit&& visit) {
  std::uint64_t number = 0;
  for (std::int64_t slice = 0; slice < tensor.layout().slice_count(); ++slice) {
    for (std::int64_t io_chunk = 0; io_chunk < io_chunks_of(tensor); ++io_chunk)
      visit(io_chunk, slice, number++);
  }
}

// All I/O chunks at once, each with its own pattern.
void write_all(ScratchTensor& tensor, std::uint64_t version) {
  std::vector<AlignedBuffer> buffers;
  BlockWait wait;
  for_each_io_chunk(tensor, [&](std::int64_t io_chunk, std::int64_t slice, std::uint64_t number) {
    AlignedBuffer& buffer = buffers.emplace_back(bytes_of(tensor, io_chunk, slice));
    fill_pattern({buffer.data(), buffer.size()}, number, version);
    tensor.write(io_chunk, slice, buffer.data(), 0, wait.completion());
  });
  wait.wait();
}

AlignedBuffer read(const ScratchTensor& tensor, std::int64_t io_chunk, std::int64_t slice) {
  AlignedBuffer buffer(bytes_of(tensor, io_chunk, slice));
  BlockWait wait;
  tensor.read(io_chunk, slice, buffer.data(), wait.completion());
  wait.wait();
  return buffer;
}

}  // namespace

TEMPLATE_TEST_CASE("scratch_tensor: units are zero, written, rewritten and read in place", "",
                   OnDisk, InMemory) {
  TestType f;
  const TensorLayout layout{1000, 77, 128};
  ScratchTensor tensor(*f.io, f.root, DType::kF32, layout);
  CHECK(f.files.list(f.root).empty());
  REQUIRE(tensor.io_chunk_blocks() == 1);
  CHECK(bytes_of(tensor, 0, 0) == 128 * 32 * 4);
  CHECK(bytes_of(tensor, 7, 2) == 104 * 16 * 4);  // neither is a whole I/O chunk
  CHECK(is_zero(read(tensor, 7, 2).first(bytes_of(tensor, 7, 2))));
  write_all(tensor, 1);
  AlignedBuffer buffer(bytes_of(tensor, 1, 1));
  fill_pattern({buffer.data(), buffer.size()}, 9, 2);
  BlockWait wait;
  tensor.write(1, 1, buffer.data(), 0, wait.completion());
  wait.wait();
  for_each_io_chunk(tensor, [&](std::int64_t io_chunk, std::int64_t slice, std::uint64_t number) {
    const std::size_t bytes = bytes_of(tensor, io_chunk, slice);
    const AlignedBuffer back = read(tensor, io_chunk, slice);
    CHECK(pattern_mismatch(back.first(bytes), number, number == 9 ? 2 : 1) == bytes);
  });
}

TEST_CASE("scratch_tensor: units take whole pages in every slice, and no less than a quarter") {
  CHECK(scratch_io_chunk_blocks({4'000'000, 128, 16384}, DType::kF32) == 1);
  CHECK(scratch_io_chunk_blocks({4'000'000, 40, 16384}, DType::kF32) == 1);
  CHECK(scratch_io_chunk_blocks({4'000'000, 7, 16384}, DType::kF32) == 2);
  CHECK(scratch_io_chunk_blocks({4'000'000, 1, 16384}, DType::kF32) == 8);
  CHECK(scratch_io_chunk_blocks({4'000'000, 1, 16384}, DType::kF64) == 4);
  CHECK(scratch_io_chunk_blocks({4096, 40, 16}, DType::kF32) == 8);
  CHECK(scratch_io_chunk_blocks({100, 40, 16}, DType::kF32) == 8);  // all of it, padded
}

TEST_CASE("scratch_tensor: no space is one clear error before anything is written") {
  InMemory f;
  const TensorLayout layout{100'000, 64, 16384};
  CHECK(error_of<IoError>([&] { ScratchTensor(*f.io, f.root, DType::kF32, layout); }) ==
        "cannot reserve 24.4 MiB for a temporary file: no space left on device, /; free some space "
        "or write to another disk");
  // What another gives back can be had.
  const TensorLayout fits{2048, 64, 1024};
  for (int i = 0; i < 5; ++i) ScratchTensor(*f.io, f.root, DType::kF32, fits);
}

TEST_CASE("scratch_tensor: units without their zeros, and whole ones again") {
  InMemory f;
  const TensorLayout layout{1000, 64, 128};
  ScratchTensor tensor(*f.io, f.root, DType::kF32, layout);
  REQUIRE(tensor.packs());
  const auto write = [&](std::int64_t io_chunk, float step) {
    AlignedBuffer buffer(bytes_of(tensor, io_chunk, 1));
    auto* rows = reinterpret_cast<float*>(buffer.data());
    for (std::size_t i = 0; i < buffer.size() / sizeof(float); ++i) {
      rows[i] = i % 4 == 0 || step == 0 ? 1 + static_cast<float>(i) * step : 0;
    }
    const std::int64_t zeros = tensor.pack(io_chunk, 1, buffer.data());
    BlockWait wait;
    tensor.write(io_chunk, 1, buffer.data(), zeros, wait.completion());
    wait.wait();
    CHECK(tensor.zeros(io_chunk, 1) == zeros);
    CHECK(tensor.needs_decoding(io_chunk, 1) == (zeros > 0));
    return zeros;
  };
  const auto check = [&](std::int64_t io_chunk, float step) {
    AlignedBuffer back = read(tensor, io_chunk, 1);
    tensor.verify_and_decode(io_chunk, 1, back.data());
    const auto* rows = reinterpret_cast<const float*>(back.data());
    bool same = true;
    for (std::size_t i = 0; i < bytes_of(tensor, io_chunk, 1) / sizeof(float); ++i) {
      same &= rows[i] == (i % 4 == 0 || step == 0 ? 1 + static_cast<float>(i) * step : 0);
    }
    CHECK(same);
  };
  CHECK(write(2, 1) == 8192);  // of 16,384 bytes 4,096 are values, 512 bits of a mask
  CHECK(write(3, 0) == 0);
  CHECK(write(7, 2) > 0);  // an I/O chunk that is no whole one
  CHECK(tensor.zeros(2, 0) == 0);
  check(2, 1);
  check(3, 0);
  check(7, 2);
  CHECK(write(2, 0) == 0);
  CHECK(write(3, 3) == 8192);
  check(2, 0);
  check(3, 3);
  AlignedBuffer damaged(bytes_of(tensor, 3, 1));
  std::memset(damaged.data(), 0xff, damaged.size());
  CHECK_THAT(error_of<IoError>([&] { tensor.verify_and_decode(3, 1, damaged.data()); }),
             Catch::Matchers::StartsWith("what was written came back as something else"));
}

TEST_CASE("scratch_tensor: a failing write is reported, torn ones too") {
  InMemory f;
  test::FaultyBlockIo io(*f.io);
  ScratchTensor tensor(io, f.root, DType::kF32, {1000, 64, 512});
  io.faults = {.first_failing_write = 3, .torn_write = true};
  CHECK_THAT(error_of<IoError>([&] { write_all(tensor, 1); }),
             Catch::Matchers::Contains("cannot write: no space left on device"));
  io.faults = {};
  write_all(tensor, 2);
  const std::size_t bytes = bytes_of(tensor, 0, 1);
  CHECK(pattern_mismatch(read(tensor, 0, 1).first(bytes), 2, 2) == bytes);
}

}  // namespace ooc
