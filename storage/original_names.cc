#include "storage/original_names.h"

#include <fmt/format.h>

#include "storage/errors.h"

namespace ooc {

OriginalNames::OriginalNames(const Dataset& dataset)
    : ends_(*dataset.tensor("original_id_ends")), bytes_(*dataset.tensor("original_id_bytes")) {}

std::int64_t OriginalNames::end_of(std::int64_t row) const {
  const std::int64_t block_rows = ends_.layout().block_rows;
  return reinterpret_cast<const std::int64_t*>(ends_.chunk(row / block_rows, 0))[row % block_rows];
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
