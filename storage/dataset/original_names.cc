#include "storage/dataset/original_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "storage/base/errors.h"

namespace ooc {

OriginalNames::OriginalNames(const Dataset& dataset)
    : ends_(*dataset.tensor("original_id_ends")), bytes_(*dataset.tensor("original_id_bytes")) {}

std::int64_t OriginalNames::end_of(std::int64_t row) const {
  const std::int64_t block_rows = ends_.layout().block_rows;
  return reinterpret_cast<const std::int64_t*>(ends_.chunk(row / block_rows, 0))[row % block_rows];
}

std::pair<std::int64_t, std::int64_t> OriginalNames::place_of(std::int64_t row) const {
  const auto chunk_of = [](const VertexTensorFile& file, std::int64_t at) {
    return vertex_chunk_of(file.layout(), file.dtype(), at / file.layout().block_rows, 0);
  };
  return {chunk_of(ends_, row), chunk_of(bytes_, std::min(end_of(row), bytes_.layout().rows) - 1)};
}

std::int64_t OriginalNames::resident_bytes() const {
  std::int64_t bytes = 0;
  for (const VertexTensorFile* file : {&ends_, &bytes_}) {
    const std::vector<std::uint64_t> chunks = vertex_chunk_bytes(file->layout(), file->dtype());
    bytes += 2 * static_cast<std::int64_t>(*std::max_element(chunks.begin(), chunks.end()));
  }
  return bytes;
}

void OriginalNames::release() const {
  ends_.file().release();
  bytes_.file().release();
}

std::string_view OriginalNames::of(std::int64_t row, std::string& buffer) const {
  const std::int64_t begin = row == 0 ? 0 : end_of(row - 1), end = end_of(row);
  if (begin < 0 || begin >= end || end > bytes_.layout().rows || end - begin > kMaxIdBytes) {
    throw DataError("an original id that is empty or beyond the others",
                    fmt::format("{}, row {}", ends_.file().path(), row),
                    "import the dataset again");
  }
  const std::int64_t block_rows = bytes_.layout().block_rows;
  if (begin / block_rows == (end - 1) / block_rows) {
    const std::byte* const block = bytes_.chunk(begin / block_rows, 0);
    return {reinterpret_cast<const char*>(block) + begin % block_rows,
            static_cast<std::size_t>(end - begin)};
  }
  buffer.resize(static_cast<std::size_t>(end - begin));
  bytes_.read_rows(begin, end - begin, buffer.data());
  return buffer;
}

}  // namespace ooc
