#include "storage/stores/direct_chunk_reader.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <vector>

#include "storage/format/edge_file.h"
#include "storage/format/vertex_tensor.h"
#include "tests/support/aligned_buffer.h"
#include "tests/support/edge_files.h"
#include "tests/support/fake_block_io.h"
#include "tests/support/fake_file_system.h"
#include "tests/support/input_files.h"

namespace ooc {
namespace {

using test::AlignedBuffer;
using test::error_of;
using test::FaultyFileSystem;
using test::MemoryBlockIo;
using test::MemoryFileSystem;
using test::TemporaryDirectory;

struct OnDisk {
  TemporaryDirectory directory;
  std::string path = directory / "chunks";
  FileSystem& files = posix_file_system();
  std::unique_ptr<BlockIo> io = make_block_io();
};
struct InMemory {
  MemoryFileSystem memory;
  std::string path = "/chunks";
  FileSystem& files = memory;
  std::unique_ptr<BlockIo> io = std::make_unique<MemoryBlockIo>(memory);
};

void write_tensor(FileSystem& files, const std::string& path) {
  const TensorLayout layout{1000, 40, 128};
  std::vector<float> values(1000 * 40);
  std::iota(values.begin(), values.end(), 1.0f);
  VertexTensorWriter writer(files, path, DType::kF32, layout);
  writer.append_rows(values.data(), layout.rows);
  writer.finish();
}

void write_edges(FileSystem& files, const std::string& path) {
  const EdgeLayout layout{256, 400, 16, 16, 2};
  std::vector<Edge> edges;
  for (VertexId i = 0; i < 400; ++i) edges.push_back({i * i % 97, i * 31 % 256});
  test::write_edge_file(files, path, layout, edges);
}

// Every chunk at once, each compared with the mapped one; returns how many aren't empty.
int compare_all(BlockIo& io, const ChunkFileReader& file) {
  const DirectChunkReader direct(io, file);
  std::vector<AlignedBuffer> buffers;
  BlockWait wait;
  int count = 0;
  for (std::uint64_t i = 0; i < file.shape().chunk_count; ++i) {
    buffers.emplace_back(std::max<std::size_t>(direct.buffer_bytes(i), 1));
    if (direct.buffer_bytes(i) == 0) continue;
    ++count;
    direct.read(i, buffers[i].data(), wait.completion());
  }
  wait.wait();
  for (std::uint64_t i = 0; i < buffers.size(); ++i) {
    const auto payload = direct.payload(i, buffers[i].data());
    CHECK(!file.needs_verify(i));
    const auto mapped = file.chunk(i);
    CHECK(std::equal(payload.begin(), payload.end(), mapped.begin(), mapped.end()));
  }
  return count;
}

}  // namespace

TEMPLATE_TEST_CASE("direct_chunk_reader: vertex and edge chunks are those of the mapping", "",
                   OnDisk, InMemory) {
  TestType f;
  write_tensor(f.files, f.path);
  CHECK(compare_all(*f.io, {f.files, f.path, ChunkFileKind::kVertexTensor, VerifyPolicy::kFirst}) ==
        16);
  write_edges(f.files, f.path);
  const int edge_chunks =
      compare_all(*f.io, {f.files, f.path, ChunkFileKind::kEdges, VerifyPolicy::kFirst});
  CHECK(edge_chunks > 20);
  CHECK(edge_chunks < 128);  // some are empty
}

TEST_CASE("direct_chunk_reader: a flipped bit is found at the first read, by the policy") {
  InMemory f;
  write_tensor(f.files, f.path);
  std::vector<std::byte> bytes = read_file(f.files, f.path);
  bytes[4096 + 5] ^= std::byte{4};
  f.files.update(f.path)->write_at(0, bytes);
  const AlignedBuffer buffer(16384);
  const auto first_chunk = [&](VerifyPolicy policy) {
    const ChunkFileReader file(f.files, f.path, ChunkFileKind::kVertexTensor, policy);
    const DirectChunkReader direct(*f.io, file);
    BlockWait wait;
    direct.read(0, buffer.data(), wait.completion());
    wait.wait();
    return direct.payload(0, buffer.data()).size();
  };
  CHECK(error_of<DataError>([&] { first_chunk(VerifyPolicy::kFirst); }) ==
        "chunk 0 has the wrong checksum, /chunks, offset 4096; import the dataset again");
  CHECK(first_chunk(VerifyPolicy::kNever) == 128 * 32 * 4);
}

TEST_CASE("direct_chunk_reader: what was verified is not verified again, unless always") {
  InMemory f;
  write_tensor(f.files, f.path);
  const AlignedBuffer buffer(16384);
  const auto payload_twice = [&](VerifyPolicy policy) {
    const ChunkFileReader file(f.files, f.path, ChunkFileKind::kVertexTensor, policy);
    const DirectChunkReader direct(*f.io, file);
    BlockWait wait;
    direct.read(0, buffer.data(), wait.completion());
    wait.wait();
    direct.payload(0, buffer.data());
    buffer.data()[0] ^= std::byte{1};
    direct.payload(0, buffer.data());
  };
  CHECK_NOTHROW(payload_twice(VerifyPolicy::kFirst));
  CHECK_THROWS_AS(payload_twice(VerifyPolicy::kAlways), DataError);
}

TEST_CASE("direct_chunk_reader: the file is never mapped") {
  MemoryFileSystem memory;
  FaultyFileSystem files(memory);
  write_tensor(files, "/chunks");
  MemoryBlockIo io(files);
  const ChunkFileReader file(files, "/chunks", ChunkFileKind::kVertexTensor, VerifyPolicy::kFirst);
  const DirectChunkReader direct(io, file);
  const AlignedBuffer buffer(direct.buffer_bytes(15));
  BlockWait wait;
  direct.read(15, buffer.data(), wait.completion());
  wait.wait();
  direct.payload(15, buffer.data());
  CHECK(files.counts.maps == 0);
}

TEST_CASE("direct_chunk_reader: a file that was replaced meanwhile is refused") {
  InMemory f;
  write_tensor(f.files, f.path);
  const ChunkFileReader file(f.files, f.path, ChunkFileKind::kVertexTensor, VerifyPolicy::kFirst);
  write_edges(f.files, f.path);
  CHECK_THAT(error_of<DataError>([&] { DirectChunkReader(*f.io, file); }),
             Catch::Matchers::Contains("the file was replaced while it was opened, /chunks"));
}

}  // namespace ooc
