#include "storage/scratch_tensor.h"

#include <catch2/catch.hpp>
#include <vector>

#include "storage/vertex_tensor.h"
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

// All chunks at once, each with its own pattern.
void write_all(ScratchTensor& tensor, std::uint64_t version) {
  std::vector<AlignedBuffer> buffers;
  BlockWait wait;
  for (std::int64_t chunk = 0; chunk < tensor.chunk_count(); ++chunk) {
    AlignedBuffer& buffer = buffers.emplace_back(tensor.chunk_bytes(chunk));
    fill_pattern({buffer.data(), buffer.size()}, static_cast<std::uint64_t>(chunk), version);
    tensor.write(chunk, buffer.data(), wait.completion());
  }
  wait.wait();
}

AlignedBuffer read(const ScratchTensor& tensor, std::int64_t chunk) {
  AlignedBuffer buffer(tensor.chunk_bytes(chunk));
  BlockWait wait;
  tensor.read(chunk, buffer.data(), wait.completion());
  wait.wait();
  return buffer;
}

}  // namespace

TEMPLATE_TEST_CASE("scratch_tensor: chunks are zero, written, rewritten and read in place", "",
                   OnDisk, InMemory) {
  TestType f;
  const TensorLayout layout{1000, 77, 128};
  ScratchTensor tensor(*f.io, f.root, DType::kF32, layout);
  CHECK(f.files.list(f.root).empty());
  REQUIRE(tensor.chunk_count() == 3 * 8);
  CHECK(tensor.chunk_bytes(0) == 128 * 32 * 4);
  CHECK(tensor.chunk_bytes(vertex_chunk_of(layout, DType::kF32, 7, 2)) ==
        104 * 16 * 4);  // neither is a whole unit
  const AlignedBuffer unwritten = read(tensor, 23);
  CHECK(is_zero(unwritten.first(tensor.chunk_bytes(23))));
  write_all(tensor, 1);
  AlignedBuffer buffer(tensor.chunk_bytes(9));
  fill_pattern({buffer.data(), buffer.size()}, 9, 2);
  BlockWait wait;
  tensor.write(9, buffer.data(), wait.completion());
  wait.wait();
  for (std::int64_t chunk = 0; chunk < tensor.chunk_count(); ++chunk) {
    const std::size_t bytes = tensor.chunk_bytes(chunk);
    const AlignedBuffer back = read(tensor, chunk);
    CHECK(pattern_mismatch(back.first(bytes), static_cast<std::uint64_t>(chunk),
                           chunk == 9 ? 2 : 1) == bytes);
  }
}

TEST_CASE("scratch_tensor: its chunks are those of a vertex tensor's file") {
  InMemory f;
  for (const std::int64_t cols : {1, 7, 8, 40, 64}) {
    const TensorLayout layout{300, cols, 32};
    const ScratchTensor tensor(*f.io, f.root, DType::kF32, layout);
    const std::vector<std::uint64_t> bytes = vertex_chunk_bytes(layout, DType::kF32);
    REQUIRE(tensor.chunk_count() == static_cast<std::int64_t>(bytes.size()));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      CHECK(tensor.chunk_bytes(static_cast<std::int64_t>(i)) == bytes[i]);
    }
    const std::int64_t last =
        vertex_chunk_of(layout, DType::kF32, layout.block_count() - 1, layout.slice_count() - 1);
    CHECK(last == tensor.chunk_count() - 1);
  }
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

TEST_CASE("scratch_tensor: a failing write is reported, torn ones too") {
  InMemory f;
  test::FaultyBlockIo io(*f.io);
  ScratchTensor tensor(io, f.root, DType::kF32, {1000, 64, 512});
  io.faults = {.first_failing_write = 3, .torn_write = true};
  CHECK_THAT(error_of<IoError>([&] { write_all(tensor, 1); }),
             Catch::Matchers::Contains("cannot write: no space left on device"));
  io.faults = {};
  write_all(tensor, 2);
  const AlignedBuffer back = read(tensor, 2);
  CHECK(pattern_mismatch(back.first(tensor.chunk_bytes(2)), 2, 2) == tensor.chunk_bytes(2));
}

}  // namespace ooc
