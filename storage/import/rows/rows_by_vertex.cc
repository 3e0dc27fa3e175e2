#include "storage/import/rows/rows_by_vertex.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "storage/base/errors.h"
#include "storage/import/rows/row_buckets.h"

namespace ooc {
namespace {

constexpr std::int64_t kBlockElements = 256 << 10;

class RowsByVertex final : public TableReader {
 public:
  RowsByVertex(FileSystem& files, std::unique_ptr<TableReader> table,
               const RowsByVertexOptions& options)
      : files_(files), table_(std::move(table)), options_(options) {}

  const std::string& name() const override { return table_->name(); }
  std::int64_t rows() override { return options_.vertices; }
  std::optional<std::int64_t> known_rows() const override { return options_.vertices; }
  std::int64_t cols() const override { return table_->cols(); }
  ElementKind kind() const override { return table_->kind(); }
  bool has_all_columns() const override { return table_->has_all_columns(); }
  std::string_view first_name() const override { return table_->first_name(); }
  std::optional<std::int64_t> stated_vertices() const override { return table_->stated_vertices(); }

  std::int64_t read(std::span<std::int64_t> out) override { return read_rows(out); }
  std::int64_t read(std::span<float> out) override { return read_rows(out); }

  void rewind() override {
    left_ = {};
    if (buckets_) buckets_->rewind();
  }
  void read_nan_as(std::int64_t value) override {
    buckets_.reset();  // they hold another value, if integers
    nan_value_ = value;
    table_->read_nan_as(value);
  }
  std::string where(std::int64_t row) override {
    const auto own = row_of(row);
    return own ? table_->where(*own) : name();
  }
  std::string row_text(std::int64_t row) override {
    const auto own = row_of(row);
    return own ? table_->row_text(*own) : "";
  }

 private:
  // The table's own row of a vertex, if it has one.
  std::optional<std::int64_t> row_of(std::int64_t vertex) const {
    const auto& vertices = *options_.row_vertices;
    const auto found =
        std::find(vertices.begin(), vertices.end(), static_cast<VertexIndex>(vertex));
    if (found == vertices.end()) return std::nullopt;
    return found - vertices.begin();
  }
  template <class T>
  std::int64_t read_rows(std::span<T> out) {
    if (!buckets_ || reads_floats_ != std::is_same_v<T, float>) fill_buckets<T>();
    const std::size_t row_bytes = static_cast<std::size_t>(cols()) * sizeof(T);
    auto wanted = std::as_writable_bytes(out.first(out.size() - out.size() % cols()));
    std::int64_t count = 0;
    while (!wanted.empty()) {
      if (left_.empty()) left_ = buckets_->next();
      if (left_.empty()) break;
      const std::size_t bytes = std::min(wanted.size(), left_.size());
      std::memcpy(wanted.data(), left_.data(), bytes);
      wanted = wanted.subspan(bytes);
      left_ = left_.subspan(bytes);
      count += static_cast<std::int64_t>(bytes / row_bytes);
    }
    return count;
  }

  template <class T>
  void fill_buckets() {
    const auto cols = static_cast<std::size_t>(table_->cols());
    buckets_.reset();  // its file
    buckets_ = std::make_unique<RowBuckets>(
        files_, RowBuckets::Options{options_.scratch, options_.vertices, cols * sizeof(T),
                                    options_.memory_bytes});
    reads_floats_ = std::is_same_v<T, float>;
    left_ = {};
    table_->rewind();
    std::vector<bool> has_row(static_cast<std::size_t>(options_.vertices), false);
    std::vector<T> block(std::max<std::size_t>(1, kBlockElements / cols) * cols);
    const RowVertices& vertices = *options_.row_vertices;
    std::size_t row = 0;
    const auto add = [&](VertexIndex vertex, const T* values) {
      buckets_->add(vertex, reinterpret_cast<const std::byte*>(values));
      has_row[vertex] = true;
    };
    while (const std::int64_t count = table_->read(std::span<T>(block))) {
      for (std::int64_t i = 0; i < count; ++i) {
        if (row == vertices.size()) refuse_rows();
        add(vertices[row++], block.data() + static_cast<std::size_t>(i) * cols);
      }
    }
    if (row < vertices.size()) refuse_rows();
    std::fill(block.begin(), block.end(), missing<T>());
    for (std::size_t vertex = 0; vertex < has_row.size(); ++vertex) {
      if (!has_row[vertex]) add(static_cast<VertexIndex>(vertex), block.data());
    }
    buckets_->finish();
  }

  template <class T>
  T missing() const {
    if constexpr (std::is_same_v<T, float>) {
      return std::numeric_limits<float>::quiet_NaN();
    } else {
      return nan_value_.value_or(0);
    }
  }

  [[noreturn]] void refuse_rows() const {
    throw DataError(
        fmt::format("not the {} rows that ids belong to", options_.row_vertices->size()), name(),
        "every row needs its id");
  }

  FileSystem& files_;
  std::unique_ptr<TableReader> table_;
  RowsByVertexOptions options_;
  std::unique_ptr<RowBuckets> buckets_;
  bool reads_floats_ = false;
  std::span<const std::byte> left_;  // of the bucket at hand
  std::optional<std::int64_t> nan_value_;
};

}  // namespace

std::unique_ptr<TableReader> rows_by_vertex(FileSystem& files, std::unique_ptr<TableReader> table,
                                            const RowsByVertexOptions& options) {
  return std::make_unique<RowsByVertex>(files, std::move(table), options);
}

}  // namespace ooc
