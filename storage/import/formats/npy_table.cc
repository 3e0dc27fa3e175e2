#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "storage/base/errors.h"
#include "storage/import/decode/element.h"
#include "storage/import/formats/npy.h"

namespace ooc {
namespace {

constexpr std::int64_t kScratchBytes = 1 << 20;
constexpr std::int64_t kMaxCompressedColumns = 32;  // each needs a stream of its own

template <class I8, class I16, class I32, class I64, class Visit>
void with_integer_type(const NpyHeader& header, Visit&& visit) {
  if (header.item_bytes == 1) visit.template operator()<I8>();
  if (header.item_bytes == 2) visit.template operator()<I16>();
  if (header.item_bytes == 4) visit.template operator()<I32>();
  if (header.item_bytes == 8) visit.template operator()<I64>();
}

// Calls visit.template operator()<T>() with the array's element type; not at all for strings and
// sizes that numbers do not have.
template <class Visit>
void with_element_type(const NpyHeader& header, Visit&& visit) {
  switch (header.kind) {
    case 'b':
      if (header.item_bytes == 1) visit.template operator()<std::uint8_t>();
      return;
    case 'i':
      return with_integer_type<std::int8_t, std::int16_t, std::int32_t, std::int64_t>(header,
                                                                                      visit);
    case 'u':
      return with_integer_type<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>(header,
                                                                                          visit);
    case 'f':
      if (header.item_bytes == 2) visit.template operator()<Half>();
      if (header.item_bytes == 4) visit.template operator()<float>();
      if (header.item_bytes == 8) visit.template operator()<double>();
      return;
    default:
      return;
  }
}

bool is_number(const NpyHeader& header) {
  bool known = false;
  with_element_type(header, [&]<class T>() { known = true; });
  return known;
}

template <class T>
std::string element_text(T value) {
  if constexpr (std::is_same_v<T, Half>) {
    return fmt::format("{}", to_float(value));
  } else {
    return fmt::format("{}", value);
  }
}

// The elements lie row after row, or column after column (Fortran order, or C order transposed).
// Column after column, a seekable source jumps between columns; others get a stream per column.
class NpyTable final : public TableReader {
 public:
  NpyTable(std::unique_ptr<ByteSource> source, NpyHeader header) : header_(std::move(header)) {
    if (!is_number(header_) && !is_string()) refuse_type(source->name());
    if (header_.shape.empty() || header_.shape.size() > 2) {
      throw DataError(
          fmt::format("the array has {} dimensions where 1 or 2 are needed", header_.shape.size()),
          fmt::format("{}, shape ({})", source->name(), fmt::join(header_.shape, ", ")),
          "save it as a vector or a matrix");
    }
    rows_ = header_.shape[0];
    cols_ = header_.shape.size() == 2 ? header_.shape[1] : 1;
    by_column_ = header_.fortran_order && cols_ > 1;
    streams_.push_back(std::move(source));
  }

  const std::string& name() const override { return streams_[0]->name(); }
  std::int64_t rows() override { return rows_; }
  std::optional<std::int64_t> known_rows() const override { return rows_; }
  std::int64_t cols() const override { return cols_; }

  ElementKind kind() const override {
    if (is_string()) return ElementKind::kString;
    if (header_.kind == 'b') return ElementKind::kBool;
    return header_.kind == 'f' ? ElementKind::kFloat : ElementKind::kInteger;
  }

  std::int64_t read(std::span<std::int64_t> out) override { return read_rows(out); }
  std::int64_t read(std::span<float> out) override { return read_rows(out); }

  void rewind() override {
    row_ = 0;
    placed_ = false;
  }

  bool transpose() override {
    if (header_.shape.size() != 2) return false;
    std::swap(rows_, cols_);
    transposed_ = !transposed_;
    by_column_ = (header_.fortran_order != transposed_) && cols_ > 1;
    return true;
  }

  void read_nan_as(std::int64_t value) override { nan_value_ = value; }

  std::string where(std::int64_t row) override {
    if (transposed_) return fmt::format("{}, column {}", name(), row);
    return fmt::format("{}, row {}", name(), row);
  }

 private:
  bool is_string() const { return header_.kind == 'S' || header_.kind == 'U'; }
  [[noreturn]] void refuse_type(const std::string& name) const {
    throw DataError(fmt::format("the array's type '{}' is not supported", header_.descr), name,
                    is_string() ? "save it as integers, floats or booleans; strings may be names "
                                  "of classes or, with --remap-ids, ids"
                                : "save it as integers, floats or booleans");
  }

  template <class Out>
  std::int64_t read_rows(std::span<Out> out) {
    if (is_string()) refuse_type(name());
    if (cols_ == 0) return 0;
    const std::int64_t wanted =
        std::min(static_cast<std::int64_t>(out.size()) / cols_, rows_ - row_);
    if (wanted == 0) return 0;
    if (!placed_) place_streams();
    const std::int64_t row_bytes = header_.item_bytes * (by_column_ ? 1 : cols_);
    const std::int64_t step = std::max<std::int64_t>(1, kScratchBytes / row_bytes);
    for (std::int64_t done = 0; done < wanted;) {
      const std::int64_t count = std::min(step, wanted - done);
      Out* const first = out.data() + done * cols_;
      if (by_column_) {
        for (std::int64_t col = 0; col < cols_; ++col) {
          fetch(column_stream(col), count);
          convert(first + col, count, cols_, col);
        }
      } else {
        fetch(*streams_[0], count * cols_);
        convert(first, count * cols_, 1, 0);
      }
      row_ += count;
      done += count;
    }
    return wanted;
  }

  void place_streams() {
    placed_ = true;
    if (!by_column_ || streams_[0]->seekable()) {
      if (by_column_ && !std::exchange(compared_, true)) streams_[0]->compare_checksum();
      if (!by_column_) streams_[0]->seek(header_.payload_offset);
      return;
    }
    if (cols_ > kMaxCompressedColumns) {
      throw DataError(fmt::format("the array is compressed and lies by columns, {} of them", cols_),
                      name(), "save it with its rows together, numpy.ascontiguousarray(x)");
    }
    while (static_cast<std::int64_t>(streams_.size()) < cols_) {
      streams_.push_back(streams_[0]->reopen());
    }
    for (std::int64_t col = 0; col < cols_; ++col) {
      streams_[col]->seek(column_offset(col));
    }
  }

  std::uint64_t column_offset(std::int64_t col) const {
    return header_.payload_offset + static_cast<std::uint64_t>(col * rows_ * header_.item_bytes);
  }

  ByteSource& column_stream(std::int64_t col) {
    if (!streams_[0]->seekable()) return *streams_[col];
    streams_[0]->seek(column_offset(col) + static_cast<std::uint64_t>(row_ * header_.item_bytes));
    return *streams_[0];
  }

  void fetch(ByteSource& source, std::int64_t elements) {
    scratch_.resize(static_cast<std::size_t>(elements * header_.item_bytes));
    read_exact(source, scratch_);
  }

  // Converts the fetched elements to out[0], out[stride], ... ; `col` is the first one's column.
  template <class Out>
  void convert(Out* out, std::int64_t elements, std::int64_t stride, std::int64_t col) {
    with_element_type(header_, [&]<class In>() {
      const std::byte* bytes = scratch_.data();
      for (std::int64_t i = 0; i < elements; ++i, bytes += sizeof(In)) {
        In value;
        std::memcpy(&value, bytes, sizeof(In));
        const Conversion status = convert_element(value, out[i * stride]);
        if (status == Conversion::kOk || replace_nan(value, out[i * stride])) continue;
        const std::int64_t row = row_ + (by_column_ ? i : i / cols_);
        refuse_value(status, element_text(value), row, by_column_ ? col : i % cols_);
      }
    });
  }

  // Whether `value` is a NaN that integers have a value for.
  template <class In, class Out>
  bool replace_nan(In value, Out& out) const {
    if constexpr (std::is_integral_v<Out> && !std::is_integral_v<In>) {
      if (!nan_value_ || !is_nan(value)) return false;
      out = *nan_value_;
      return true;
    }
    return false;
  }

  [[noreturn]] void refuse_value(Conversion status, const std::string& value, std::int64_t row,
                                 std::int64_t col) {
    const std::string place = cols_ > 1 && !transposed_ ? fmt::format(", column {}", col) : "";
    throw DataError(
        status == Conversion::kNotInteger ? fmt::format("{} is not an integer", value)
                                          : fmt::format("{} is out of range", value),
        where(row) + place,
        status == Conversion::kNotInteger ? "whole numbers are needed here" : "correct the value");
  }

  NpyHeader header_;
  std::vector<std::unique_ptr<ByteSource>> streams_;
  std::vector<std::byte> scratch_;
  std::int64_t rows_ = 0;
  std::int64_t cols_ = 0;
  std::int64_t row_ = 0;
  bool by_column_ = false;
  bool transposed_ = false;
  bool placed_ = false;
  std::optional<std::int64_t> nan_value_;
  bool compared_ = false;  // the checksum of what is read out of order
};

}  // namespace

std::unique_ptr<TableReader> open_npy_table(std::unique_ptr<ByteSource> source) {
  NpyHeader header = read_npy_header(*source);
  return open_array_table(std::move(source), std::move(header));
}

std::unique_ptr<TableReader> open_array_table(std::unique_ptr<ByteSource> source,
                                              NpyHeader header) {
  return std::make_unique<NpyTable>(std::move(source), std::move(header));
}

}  // namespace ooc
