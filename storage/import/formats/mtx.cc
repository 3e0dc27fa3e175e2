#include "storage/import/formats/mtx.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "storage/base/errors.h"
#include "storage/import/decode/element.h"
#include "storage/import/formats/mtx_lines.h"

namespace ooc {
namespace {

// Columns of a dense matrix are read side by side, each through a buffer.
constexpr std::size_t kColumnBuffersBytes = 64 << 20;
constexpr std::size_t kLeastBufferBytes = 4 << 10;
constexpr std::int64_t kMaxColumns = kColumnBuffersBytes / kLeastBufferBytes;
constexpr std::int64_t kMaxCompressedColumns = 8;  // each is inflated from the start

struct Entry {
  std::int64_t row = 0;
  std::int64_t col = 0;
  float value = 0;
  std::int64_t whole = 0;  // the value of an integer matrix
};

// The entries of a coordinate matrix in order, mirror images included.
class EntryReader {
 public:
  EntryReader(std::unique_ptr<ByteSource> source, bool with_values)
      : lines_(std::move(source)), with_values_(with_values), header_(read_mtx_header(lines_)) {}

  const MtxHeader& header() const { return header_; }
  const MtxLines& lines() const { return lines_; }
  MtxLines& lines() { return lines_; }

  bool next(Entry& entry) {
    if (mirror_) {
      mirror_ = false;
      std::swap(last_.row, last_.col);
      entry = last_;
      return true;
    }
    if (!lines_.next()) {
      if (listed_ == header_.entries) return false;
      throw DataError(
          fmt::format("truncated: {} entries where the header says {}", listed_, header_.entries),
          lines_.name(), "write or download the file again");
    }
    if (listed_++ == header_.entries) {
      lines_.refuse(fmt::format("more entries than the {} that the header says", header_.entries),
                    "write or download the file again");
    }
    last_.row = index(header_.rows);
    last_.col = index(header_.cols);
    if (!header_.pattern) read_value();
    if (lines_.more()) lines_.refuse("the entry has too many fields", "correct the line");
    mirror_ = header_.symmetric && last_.row != last_.col;
    entry = last_;
    return true;
  }

  void rewind() {
    lines_.reader().rewind();
    read_mtx_header(lines_);
    listed_ = 0;
    mirror_ = false;
  }

 private:
  std::int64_t index(std::int64_t extent) {
    const auto value = lines_.number<std::int64_t>();
    if (value < 1 || value > extent) {
      lines_.refuse(fmt::format("index {} is not within 1 to {}", value, extent),
                    "correct the entry, or the sizes above");
    }
    return value - 1;
  }

  void read_value() {
    if (with_values_ && header_.integer) {
      last_.whole = lines_.number<std::int64_t>();
      last_.value = static_cast<float>(last_.whole);
    } else {
      last_.value = lines_.number<float>();
    }
  }

  MtxLines lines_;
  bool with_values_;
  MtxHeader header_;
  Entry last_;
  bool mirror_ = false;  // last_ comes once more, mirrored
  std::int64_t listed_ = 0;
};

// The edges of a coordinate matrix, or their values.
class CoordinateTable final : public TableReader {
 public:
  CoordinateTable(std::unique_ptr<ByteSource> source, bool values)
      : entries_(std::move(source), values), values_(values) {
    const MtxHeader& header = entries_.header();
    name_ = entries_.lines().name() + (values_ ? ":values" : "");
    if (values_ && header.pattern) {
      throw DataError("a pattern matrix holds no values", name_, "leave the weights out");
    }
    if (header.rows != header.cols) {
      throw DataError("the matrix is not square, so its entries are no edges",
                      fmt::format("{}, {} rows and {} columns", name_, header.rows, header.cols),
                      "write the adjacency matrix, one row and one column a vertex");
    }
    if (header.symmetric) return;
    rows_ = header.entries;
    bounded_ = entries_.lines().reader().source().size().has_value();
  }

  const std::string& name() const override { return name_; }
  std::int64_t cols() const override { return values_ ? 1 : 2; }
  ElementKind kind() const override {
    return !values_ || entries_.header().integer ? ElementKind::kInteger : ElementKind::kFloat;
  }
  std::optional<std::int64_t> stated_vertices() const override {
    return values_ ? std::nullopt : std::optional(entries_.header().rows);
  }

  std::int64_t rows() override {
    count_rows(Control{});
    return *rows_;
  }
  // What a compressed file's header says is no bound on what is in it.
  std::optional<std::int64_t> known_rows() const override {
    return bounded_ ? rows_ : std::nullopt;
  }

  void count_rows(const Control& control) override {
    if (rows_) return;
    EntryReader again(entries_.lines().reader().source().reopen(), false);
    constexpr std::int64_t kStepEntries = 4096;
    std::int64_t count = 0;
    for (Entry entry; again.next(entry);) {
      if (++count % kStepEntries == 0) {
        control.step("counting rows", static_cast<double>(count), 0);
      }
    }
    rows_ = count;
    bounded_ = true;
  }

  std::int64_t read(std::span<std::int64_t> out) override {
    if (!values_) return read_edges(out);
    return read_values(out, [this](const Entry& entry) {
      if (entries_.header().integer) return entry.whole;
      std::int64_t value = 0;
      const Conversion status = convert_element(entry.value, value);
      if (status == Conversion::kOk) return value;
      entries_.lines().refuse(
          fmt::format("{} {}", entry.value,
                      status == Conversion::kNotInteger ? "is not an integer" : "is out of range"),
          "whole numbers are needed here");
    });
  }

  std::int64_t read(std::span<float> out) override {
    if (!values_) return read_edges(out);
    return read_values(out, [](const Entry& entry) { return entry.value; });
  }

  void rewind() override { entries_.rewind(); }

  std::string where(std::int64_t row) override {
    EntryReader again(entries_.lines().reader().source().reopen(), false);
    Entry entry;
    for (std::int64_t i = 0; i <= row; ++i) again.next(entry);
    return again.lines().place();
  }

 private:
  template <class Out>
  std::int64_t read_edges(std::span<Out> out) {
    const auto wanted = static_cast<std::int64_t>(out.size()) / 2;
    std::int64_t count = 0;
    for (Entry entry; count < wanted && entries_.next(entry); ++count) {
      out[2 * count] = static_cast<Out>(entry.row);
      out[2 * count + 1] = static_cast<Out>(entry.col);
    }
    return count;
  }

  template <class Out, class Value>
  std::int64_t read_values(std::span<Out> out, Value&& value) {
    const auto wanted = static_cast<std::int64_t>(out.size());
    std::int64_t count = 0;
    for (Entry entry; count < wanted && entries_.next(entry); ++count) out[count] = value(entry);
    return count;
  }

  EntryReader entries_;
  bool values_;
  std::string name_;
  std::optional<std::int64_t> rows_;
  bool bounded_ = false;  // rows_ is backed by the file's bytes
};

// A dense matrix, which lies column after column, a value a line: the columns are read side by
// side.
class DenseTable final : public TableReader {
 public:
  explicit DenseTable(std::unique_ptr<ByteSource> source) : source_(std::move(source)) {
    MtxLines lines(source_->reopen());
    header_ = read_mtx_header(lines);
    const std::int64_t most = source_->seekable() ? kMaxColumns : kMaxCompressedColumns;
    if (header_.cols > most) {
      throw DataError(fmt::format("a dense matrix of {} columns in text", header_.cols), name(),
                      fmt::format("at most {} can be read; save it with numpy.save", most));
    }
    index_columns(lines);
  }

  const std::string& name() const override { return source_->name(); }
  std::int64_t rows() override { return header_.rows; }
  std::optional<std::int64_t> known_rows() const override { return header_.rows; }
  std::int64_t cols() const override { return header_.cols; }
  ElementKind kind() const override {
    return header_.integer ? ElementKind::kInteger : ElementKind::kFloat;
  }
  std::int64_t read(std::span<std::int64_t> out) override { return read_rows(out); }
  std::int64_t read(std::span<float> out) override { return read_rows(out); }

  void rewind() override {
    row_ = 0;
    columns_.clear();
  }

  std::string where(std::int64_t row) override { return fmt::format("{}, row {}", name(), row); }

 private:
  struct Start {
    std::uint64_t offset = 0;
    std::int64_t lines_before = 0;
  };

  // Finds where each column starts, and that as many values are there as the header says.
  void index_columns(MtxLines& lines) {
    for (std::int64_t value = 0; value < header_.entries; ++value) {
      if (value % header_.rows == 0) {
        starts_.push_back({lines.reader().offset(), lines.reader().line_number()});
      }
      if (!lines.next()) {
        throw DataError(fmt::format("truncated: {} values where {} x {} are needed", value,
                                    header_.rows, header_.cols),
                        name(), "write or download the file again");
      }
    }
    if (lines.next()) lines.refuse("more values than the header says", "write the file again");
  }

  template <class Out>
  std::int64_t read_rows(std::span<Out> out) {
    if (header_.entries == 0) return 0;
    const std::int64_t cols = header_.cols;
    const std::int64_t count =
        std::min(static_cast<std::int64_t>(out.size()) / cols, header_.rows - row_);
    if (columns_.empty()) open_columns();
    for (std::int64_t col = 0; col < cols; ++col) {
      MtxLines& lines = columns_[static_cast<std::size_t>(col)];
      for (std::int64_t i = 0; i < count; ++i) {
        lines.next();
        out[i * cols + col] = lines.number<Out>();
        if (lines.more()) lines.refuse("more than one value", "write one value a line");
      }
    }
    row_ += count;
    return count;
  }

  void open_columns() {
    const std::size_t buffer =
        std::min(LineReader::kBufferBytes, kColumnBuffersBytes / starts_.size());
    columns_.reserve(starts_.size());
    for (const Start& start : starts_) {
      columns_.emplace_back(source_->reopen(), buffer);
      columns_.back().reader().seek(start.offset, start.lines_before);
    }
  }

  std::unique_ptr<ByteSource> source_;
  MtxHeader header_;
  std::vector<Start> starts_;
  std::vector<MtxLines> columns_;
  std::int64_t row_ = 0;
};

}  // namespace

std::unique_ptr<TableReader> open_mtx_table(std::unique_ptr<ByteSource> source,
                                            const std::string& member) {
  if (!member.empty() && member != "values") {
    throw DataError(fmt::format("there is no part '{}'", member), source->name(),
                    "name the file alone for edges, FILE.mtx:values for their values");
  }
  MtxLines lines(source->reopen());
  if (!read_mtx_header(lines).dense) {
    return std::make_unique<CoordinateTable>(std::move(source), !member.empty());
  }
  if (!member.empty()) {
    throw DataError("a dense matrix has no edges' values", source->name(), "name the file alone");
  }
  return std::make_unique<DenseTable>(std::move(source));
}

}  // namespace ooc
