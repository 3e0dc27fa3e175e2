#include "storage/import/ids/id_array.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "storage/base/errors.h"
#include "storage/import/formats/npy.h"
#include "storage/import/ids/id_numbers.h"

namespace ooc {
namespace {

constexpr std::int64_t kBufferBytes = 1 << 20;
constexpr std::int64_t kCodePointBytes = 4;

// Appends a code point as UTF-8. What is none becomes a byte that UTF-8 never has.
void append_utf8(std::uint32_t code, std::string& text) {
  const auto put = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
  const auto tail = [&](int shift) { put(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6);
    tail(0);
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12);
    tail(6);
    tail(0);
  } else if (code < 0x110000) {
    put(0xf0 | code >> 18);
    tail(12);
    tail(6);
    tail(0);
  } else {
    put(0xff);
  }
}

class IdArray final : public TableReader {
 public:
  IdArray(std::unique_ptr<ByteSource> source, NpyHeader header, const TextColumns& columns,
          StringIds& ids)
      : source_(std::move(source)), header_(std::move(header)), numbers_(ids, columns) {
    const auto& shape = header_.shape;
    const std::string where =
        fmt::format("{}, shape ({})", source_->name(), fmt::join(shape, ", "));
    if (header_.kind != 'S' && header_.kind != 'U') {
      throw DataError(fmt::format("strings are needed, not the type '{}'", header_.descr), where,
                      "save them as an array of strings, x.astype('str')");
    }
    if (shape.empty() || shape.size() > 2) {
      throw DataError(
          fmt::format("the array has {} dimensions where 1 or 2 are needed", shape.size()), where,
          "save it as a vector or a matrix");
    }
    rows_ = shape[0];
    cols_ = shape.size() == 2 ? shape[1] : 1;
    if (header_.fortran_order && cols_ > 1) {
      throw DataError("strings in Fortran order", where,
                      "save them in C order, numpy.ascontiguousarray(x)");
    }
    if (header_.item_bytes > kCodePointBytes * kMaxIdBytes) {
      throw DataError(fmt::format("strings of type '{}'", header_.descr), where,
                      fmt::format("at most {} bytes are possible", kMaxIdBytes));
    }
    IdArray::rewind();
  }

  const std::string& name() const override { return source_->name(); }
  std::int64_t rows() override { return rows_; }
  std::optional<std::int64_t> known_rows() const override { return rows_; }
  std::int64_t cols() const override { return cols_; }
  ElementKind kind() const override { return ElementKind::kString; }

  std::int64_t read(std::span<std::int64_t> out) override {
    if (cols_ == 0) return 0;
    const std::int64_t count =
        std::min(static_cast<std::int64_t>(out.size()) / cols_, rows_ - row_);
    const std::int64_t elements = count * cols_;
    const std::int64_t step =
        std::max<std::int64_t>(1, kBufferBytes / std::max<std::int64_t>(1, header_.item_bytes));
    for (std::int64_t done = 0; done < elements; done += step) {
      const std::int64_t part = std::min(step, elements - done);
      buffer_.resize(static_cast<std::size_t>(part * header_.item_bytes));
      read_exact(*source_, buffer_);
      for (std::int64_t i = 0; i < part; ++i) out[done + i] = number_of(i, done + i);
    }
    row_ += count;
    numbers_.check_unknown();
    return count;
  }
  std::int64_t read(std::span<float>) override {
    throw DataError("ids where numbers are needed", name(), "give another file");
  }

  void rewind() override {
    source_->seek(header_.payload_offset);
    row_ = 0;
  }
  std::string where(std::int64_t row) override { return fmt::format("{}, row {}", name(), row); }

 private:
  // Of an element of the buffer; `element` counts from row_ on.
  std::int64_t number_of(std::int64_t in_buffer, std::int64_t element) {
    const auto item = std::span<const std::byte>(buffer_).subspan(
        static_cast<std::size_t>(in_buffer * header_.item_bytes),
        static_cast<std::size_t>(header_.item_bytes));
    decode(item);
    return numbers_.of(text_, [&] {
      const std::string column = cols_ > 1 ? fmt::format(", column {}", element % cols_) : "";
      return where(row_ + element / cols_) + column;
    });
  }

  void decode(std::span<const std::byte> item) {
    text_.clear();
    if (header_.kind == 'S') {
      text_.assign(reinterpret_cast<const char*>(item.data()), item.size());
    } else {
      for (std::size_t at = 0; at < item.size(); at += kCodePointBytes) {
        std::uint32_t code = 0;
        std::memcpy(&code, item.data() + at, sizeof(code));
        append_utf8(header_.descr[0] == '>' ? __builtin_bswap32(code) : code, text_);
      }
    }
    text_.resize(text_.find_last_not_of('\0') + 1);
  }

  std::unique_ptr<ByteSource> source_;
  NpyHeader header_;
  IdNumbers numbers_;
  std::int64_t rows_ = 0;
  std::int64_t cols_ = 0;
  std::int64_t row_ = 0;  // read next
  std::vector<std::byte> buffer_;
  std::string text_;
};

}  // namespace

std::unique_ptr<TableReader> open_id_array(std::unique_ptr<ByteSource> source,
                                           const TextColumns& columns, StringIds& ids) {
  NpyHeader header = read_npy_header(*source);
  return std::make_unique<IdArray>(std::move(source), std::move(header), columns, ids);
}

}  // namespace ooc
