#include "storage/format/vertex_tensor.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <numeric>

#include "storage/base/errors.h"
#include "tests/support/fake_file_system.h"

using namespace ooc;
using test::MemoryFileSystem;

TEST_CASE("vertex_tensor: rows written in pieces come back for any shape") {
  for (const std::int64_t cols : {1, 3, 7, 8, 9, 32, 33, 70}) {
    for (const std::int64_t rows : {1, 16, 37, 64}) {
      MemoryFileSystem files;
      const TensorLayout layout{rows, cols, 16};
      std::vector<float> values(static_cast<std::size_t>(rows * cols));
      std::iota(values.begin(), values.end(), 1.0f);
      VertexTensorWriter writer(files, "/t", DType::kF32, layout);
      for (std::int64_t row = 0; row < rows;) {  // pieces of 5 rows cross block boundaries
        const std::int64_t count = std::min<std::int64_t>(5, rows - row);
        writer.append_rows(values.data() + row * cols, count);
        row += count;
      }
      writer.finish();
      const VertexTensorFile tensor(files, "/t", VerifyPolicy::kFirst, DType::kF32, rows, 16, cols);
      INFO(rows << " x " << cols);
      std::vector<float> back(values.size());
      tensor.read_rows(0, rows, back.data());
      CHECK(back == values);
      tensor.file().verify_gaps();
      // Chunks: row-major, padded with zeros to the slice's stride.
      for (std::int64_t block = 0; block < layout.block_count(); ++block) {
        for (std::int64_t slice = 0; slice < layout.slice_count(); ++slice) {
          const auto* chunk = reinterpret_cast<const float*>(tensor.chunk(block, slice));
          const std::int64_t stride = layout.slice_stride(slice);
          for (std::int64_t i = 0; i < layout.rows_of(block) * stride; ++i) {
            const std::int64_t row = block * 16 + i / stride, col = i % stride;
            const float expected =
                col < layout.slice_cols(slice)
                    ? values[static_cast<std::size_t>(row * cols + slice * 32 + col)]
                    : 0.0f;
            REQUIRE(chunk[i] == expected);
          }
        }
      }
    }
  }
}

TEST_CASE("vertex_tensor: narrow tensors share chunks of about a megabyte") {
  const TensorLayout narrow{100000, 1, 16384};
  CHECK(vertex_blocks_per_chunk(narrow, DType::kI32) == 16);
  CHECK(vertex_chunk_bytes(narrow, DType::kI32) == std::vector<std::uint64_t>{400000});
  const TensorLayout wide{100000, 40, 16384};
  const auto bytes = vertex_chunk_bytes(wide, DType::kF32);
  REQUIRE(bytes.size() == 14);  // 7 blocks x 2 slices
  CHECK(bytes[0] == 2 << 20);
  CHECK(bytes[7] == 16384 * 8 * 4);
}

TEST_CASE("vertex_tensor: another shape or type than expected is refused") {
  MemoryFileSystem files;
  VertexTensorWriter writer(files, "/t", DType::kI32, {20, 1, 16});
  const std::vector<std::int32_t> values(20);
  writer.append_rows(values.data(), 20);
  writer.finish();
  const auto open = [&](DType dtype, std::int64_t rows, std::int64_t block_rows,
                        std::int64_t cols) {
    return VertexTensorFile(files, "/t", VerifyPolicy::kFirst, dtype, rows, block_rows, cols);
  };
  CHECK_NOTHROW(open(DType::kI32, 20, 16, 1));
  CHECK_THROWS_AS(open(DType::kF32, 20, 16, 1), DataError);
  CHECK_THROWS_AS(open(DType::kI32, 21, 16, 1), DataError);
  CHECK_THROWS_AS(open(DType::kI32, 20, 32, 1), DataError);
  CHECK_THROWS_AS(open(DType::kI32, 20, 16, 2), DataError);
}

TEST_CASE("vertex_tensor: rows that were read don't stay resident") {
  const test::TemporaryDirectory directory;
  const std::string path = directory / "rows";
  constexpr std::int64_t kRows = 1 << 20, kCols = 8, kBatch = 1 << 15;  // 32 MiB
  std::vector<float> rows(kBatch * kCols, 1.5f);
  VertexTensorWriter writer(posix_file_system(), path, DType::kF32, {kRows, kCols, 1 << 14});
  for (std::int64_t row = 0; row < kRows; row += kBatch) writer.append_rows(rows.data(), kBatch);
  writer.finish();
  const VertexTensorFile tensor(posix_file_system(), path, VerifyPolicy::kFirst, DType::kF32, kRows,
                                1 << 14, kCols);
  const auto resident_pages = [] {
    std::int64_t all = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> all >> resident;
    return resident;
  };
  const std::int64_t before = resident_pages();
  double sum = 0;
  for (std::int64_t row = 0; row < kRows; row += kBatch) {
    tensor.read_rows(row, kBatch, rows.data());
    sum += std::accumulate(rows.begin(), rows.end(), 0.0);
  }
  CHECK(sum == 1.5 * kRows * kCols);
  CHECK((resident_pages() - before) * ::sysconf(_SC_PAGESIZE) < 8 << 20);
}
