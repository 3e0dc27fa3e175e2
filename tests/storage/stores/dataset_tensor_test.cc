#include "storage/stores/dataset_tensor.h"

#include <catch2/catch.hpp>
#include <cstring>

#include "storage/base/errors.h"
#include "tests/support/aligned_buffer.h"
#include "tests/support/fake_block_io.h"
#include "tests/support/tiny_dataset.h"

namespace ooc {
namespace {

using test::AlignedBuffer;

AlignedBuffer read(const TensorStore& tensor, std::int64_t io_chunk, std::int64_t slice,
                   std::size_t bytes) {
  AlignedBuffer buffer(io_aligned(bytes));
  BlockWait wait;
  tensor.read(io_chunk, slice, buffer.data(), wait.completion());
  wait.wait();
  return buffer;
}

}  // namespace

TEST_CASE("dataset_tensor: units are the file's chunks, verified once") {
  test::MemoryFileSystem files;
  test::TinyDataset spec;
  spec.vertices = 700;
  spec.feature_cols = 40;
  spec.block_rows = 64;
  spec.edges = test::random_edges(spec.vertices, 900, 1);
  const Dataset dataset = test::write_tiny_dataset(files, spec);
  test::MemoryBlockIo io(files);
  for (const char* name : {"features", "labels", "degrees"}) {
    const VertexTensorFile& file = *dataset.tensor(name);
    const DatasetTensor tensor(io, file);
    const TensorLayout& layout = tensor.layout();
    for (std::int64_t slice = 0; slice < layout.slice_count(); ++slice) {
      for (std::int64_t block = 0; block < layout.block_count();
           block += tensor.io_chunk_blocks()) {
        const std::int64_t io_chunk = block / tensor.io_chunk_blocks();
        const std::int64_t end =
            std::min(block + tensor.io_chunk_blocks(), layout.block_count()) - 1;
        const std::int64_t rows = (end - block) * layout.block_rows + layout.rows_of(end);
        const std::size_t bytes = static_cast<std::size_t>(rows * layout.slice_stride(slice)) *
                                  dtype_bytes(tensor.dtype());
        CHECK(tensor.needs_decoding(io_chunk, slice));
        const AlignedBuffer buffer = read(tensor, io_chunk, slice, bytes);
        tensor.verify_and_decode(io_chunk, slice, buffer.data());
        CHECK(!tensor.needs_decoding(io_chunk, slice));
        CHECK(std::memcmp(buffer.data(), file.chunk(block, slice), bytes) == 0);
      }
    }
  }
}

TEST_CASE("dataset_tensor: a changed byte is an error of the data") {
  test::MemoryFileSystem files;
  const Dataset dataset = test::write_tiny_dataset(files, {});
  test::MemoryBlockIo io(files);
  const DatasetTensor tensor(io, *dataset.tensor("features"));
  AlignedBuffer buffer = read(tensor, 0, 0, 60 * 5 * 4);
  buffer.data()[17] ^= std::byte{1};
  CHECK_THROWS_AS(tensor.verify_and_decode(0, 0, buffer.data()), DataError);
  CHECK(tensor.needs_decoding(0, 0));
}

}  // namespace ooc
