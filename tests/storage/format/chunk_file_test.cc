#include "storage/format/chunk_file.h"

#include <catch2/catch.hpp>

#include "storage/base/errors.h"
#include "tests/support/fake_file_system.h"

using namespace ooc;
using Catch::Matchers::Contains;
using test::MemoryFileSystem;

namespace {

constexpr const char* kPath = "/file";

std::vector<std::byte> pattern(std::size_t bytes, int seed) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(i * 31 + seed);
  return data;
}

ChunkFileShape edges_shape(std::uint64_t chunks) {
  ChunkFileShape shape;
  shape.kind = ChunkFileKind::kEdges;
  shape.chunk_count = chunks;
  return shape;
}

void write_chunk(ChunkFileWriter& writer, const std::vector<std::byte>& bytes,
                 std::uint64_t items) {
  const std::span<const std::byte> part(bytes);
  writer.write_next({&part, 1}, items);
}

// Three chunks: 10,000 bytes, none, 5 bytes.
ChunkFileInfo write_three(FileSystem& files) {
  ChunkFileWriter writer(files, kPath, edges_shape(3));
  write_chunk(writer, pattern(10000, 1), 7);
  writer.write_next({}, 0);
  write_chunk(writer, pattern(5, 2), 1);
  return writer.finish();
}

ChunkFileReader open(FileSystem& files, VerifyPolicy verify = VerifyPolicy::kFirst) {
  return ChunkFileReader(files, kPath, ChunkFileKind::kEdges, verify);
}

void verify_all(const ChunkFileReader& reader) {
  for (std::uint64_t i = 0; i < reader.shape().chunk_count; ++i) reader.chunk(i);
  reader.verify_gaps();
}

// The file's bytes after `change` has had them.
template <class Change>
void tamper(FileSystem& files, Change&& change) {
  std::vector<std::byte> bytes = read_file(files, kPath);
  change(bytes);
  files.remove_all(kPath);
  files.create(kPath)->write_at(0, bytes);
}

}  // namespace

TEST_CASE("chunk_file: chunks come back whole, aligned and with their counts") {
  MemoryFileSystem files;
  const ChunkFileInfo info = write_three(files);
  const ChunkFileReader reader = open(files);
  CHECK(reader.info() == info);
  CHECK(reader.shape() == edges_shape(3));
  REQUIRE(reader.chunk(0).size() == 10000);
  CHECK(std::equal(reader.chunk(0).begin(), reader.chunk(0).end(), pattern(10000, 1).begin()));
  CHECK(reader.chunk(1).empty());
  CHECK(reader.chunk(2).size() == 5);
  CHECK(reader.entry(0).items == 7);
  CHECK(reader.entry(0).offset == kChunkAlignment);
  CHECK(reader.entry(2).offset == 4 * kChunkAlignment);
  CHECK_NOTHROW(verify_all(reader));
}

TEST_CASE("chunk_file: pieces in any order of chunks equal whole chunks") {
  MemoryFileSystem files;
  const std::vector<std::uint64_t> sizes{300, 8192};
  ChunkFileWriter writer(files, kPath, edges_shape(2), sizes);
  const auto first = pattern(300, 3);
  const auto second = pattern(8192, 4);
  writer.append(1, std::span(second).first(5000), 1);
  writer.append(0, first, 2);
  writer.append(1, std::span(second).subspan(5000), 3);
  writer.finish();
  const ChunkFileReader reader = open(files);
  CHECK(std::equal(first.begin(), first.end(), reader.chunk(0).begin()));
  CHECK(std::equal(second.begin(), second.end(), reader.chunk(1).begin()));
  CHECK(reader.entry(1).items == 4);
}

TEST_CASE("chunk_file: every flipped byte is found") {
  MemoryFileSystem files;
  write_three(files);
  const std::size_t size = read_file(files, kPath).size();
  for (std::size_t at = 0; at < size; at += at < 100 || at > size - 200 ? 1 : 97) {
    tamper(files, [&](auto& bytes) { bytes[at] ^= std::byte{4}; });
    INFO("byte " << at);
    CHECK_THROWS_AS(verify_all(open(files)), DataError);
    tamper(files, [&](auto& bytes) { bytes[at] ^= std::byte{4}; });
  }
  CHECK_NOTHROW(verify_all(open(files)));
}

TEST_CASE("chunk_file: every truncation is found at opening") {
  MemoryFileSystem files;
  write_three(files);
  const std::vector<std::byte> whole = read_file(files, kPath);
  for (std::size_t size : {std::size_t{0}, std::size_t{50}, std::size_t{4096}, whole.size() / 2,
                           whole.size() - 64, whole.size() - 1}) {
    tamper(files, [&](auto& bytes) { bytes.assign(whole.begin(), whole.begin() + size); });
    INFO("cut to " << size);
    CHECK_THROWS_AS(open(files), DataError);
  }
}

TEST_CASE("chunk_file: a corrupt chunk is refused at its first read, and named") {
  MemoryFileSystem files;
  write_three(files);
  tamper(files, [](auto& bytes) { bytes[kChunkAlignment + 9999] ^= std::byte{1}; });
  CHECK_THROWS_WITH(open(files).chunk(0),
                    Contains("chunk 0 has the wrong checksum, /file, offset 4096"));
  CHECK_NOTHROW(open(files).chunk(2));
  CHECK_NOTHROW(open(files, VerifyPolicy::kNever).chunk(0));
}

TEST_CASE("chunk_file: a newer format version is refused by its number") {
  MemoryFileSystem files;
  write_three(files);
  tamper(files, [](auto& bytes) { bytes[8] = std::byte{9}; });
  CHECK_THROWS_WITH(open(files), Contains("version 9 is newer than this ooc knows (1)"));
}

TEST_CASE("chunk_file: nothing appears under the final name before finish") {
  MemoryFileSystem files;
  {
    ChunkFileWriter writer(files, kPath, edges_shape(1));
    write_chunk(writer, pattern(100, 1), 1);
    CHECK_FALSE(files.exists(kPath));
  }
  CHECK(files.list("/").empty());  // and an abandoned writer cleans up
}

TEST_CASE("chunk_file: no space or a failing sync leaves nothing behind") {
  for (std::int64_t n = 1; n <= 6; ++n) {
    MemoryFileSystem memory;
    test::FaultyFileSystem files(memory);
    files.faults.first_failing_write = n <= 4 ? n : 0;
    files.faults.first_failing_sync = n > 4 ? n - 4 : 0;
    INFO("fault " << n);
    CHECK_THROWS_AS(write_three(files), IoError);
    // The sync of the directory comes after the rename: then the file is whole.
    if (memory.exists(kPath)) CHECK_NOTHROW(verify_all(open(memory)));
    CHECK_FALSE(memory.exists(std::string(kPath) + ".tmp"));
  }
}
