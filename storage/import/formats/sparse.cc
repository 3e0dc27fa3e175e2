#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "storage/base/errors.h"
#include "storage/import/formats/npy.h"
#include "storage/import/formats/npz.h"

namespace ooc {
namespace {

constexpr std::size_t kFeedElements = 64 << 10;

// The elements of a vector, one after another, read through a buffer.
template <class T>
class Feed {
 public:
  explicit Feed(std::unique_ptr<TableReader> table) : table_(std::move(table)) {
    if (table_->cols() != 1) {
      throw DataError("the array is not a vector", table_->name(),
                      "save the matrix again with scipy.sparse.save_npz");
    }
  }

  T next() {
    if (used_ == filled_) {
      filled_ = static_cast<std::size_t>(table_->read(std::span<T>(buffer_)));
      used_ = 0;
      if (filled_ == 0)
        throw DataError("the array ends early", table_->name(),
                        "the file is damaged: make it again");
    }
    ++position_;
    return buffer_[used_++];
  }

  void rewind() {
    table_->rewind();
    used_ = filled_ = 0;
    position_ = 0;
  }

  TableReader& table() const { return *table_; }
  // Where the element that next() gave last lies.
  std::string where() { return table_->where(position_ - 1); }

 private:
  std::unique_ptr<TableReader> table_;
  std::vector<T> buffer_ = std::vector<T>(kFeedElements);
  std::size_t used_ = 0;
  std::size_t filled_ = 0;
  std::int64_t position_ = 0;
};

std::unique_ptr<TableReader> open_member(FileSystem& files, const std::string& path,
                                         const std::string& member) {
  return open_npy_table(open_npz_member(files, path, member));
}

class CsrTable final : public TableReader {
 public:
  CsrTable(FileSystem& files, const std::string& path)
      : name_(path),
        starts_(open_member(files, path, "indptr")),
        columns_(open_member(files, path, "indices")),
        values_(open_member(files, path, "data")) {
    const auto shape = open_member(files, path, "shape");
    std::array<std::int64_t, 3> extents = {};
    if (shape->read(std::span(extents)) != 2 || extents[0] < 0 || extents[1] < 0) {
      refuse("the shape is not that of a matrix", shape->name());
    }
    rows_ = extents[0];
    cols_ = extents[1];
    entries_ = columns_.table().rows();
    if (starts_.table().rows() != rows_ + 1) {
      refuse(fmt::format("indptr has {} elements where {} rows need {}", starts_.table().rows(),
                         rows_, rows_ + 1),
             name_);
    }
    if (values_.table().rows() != entries_) {
      refuse(fmt::format("indices has {} elements but data {}", entries_, values_.table().rows()),
             name_);
    }
  }

  const std::string& name() const override { return name_; }
  std::int64_t rows() override { return rows_; }
  std::optional<std::int64_t> known_rows() const override { return rows_; }
  std::int64_t cols() const override { return cols_; }
  ElementKind kind() const override { return values_.table().kind(); }

  std::int64_t read(std::span<std::int64_t>) override {
    throw DataError("a sparse matrix lies where integers are needed", name_,
                    "save it as a dense array, numpy.save(FILE, x.toarray())");
  }

  std::int64_t read(std::span<float> out) override {
    if (cols_ == 0) return 0;
    const std::int64_t count =
        std::min(static_cast<std::int64_t>(out.size()) / cols_, rows_ - row_);
    std::fill_n(out.data(), count * cols_, 0.0f);
    if (row_ == 0 && count > 0 && (end_ = starts_.next()) != 0) {
      refuse("indptr does not start at 0", starts_.where());
    }
    for (std::int64_t i = 0; i < count; ++i, ++row_) {
      const std::int64_t begin = end_;
      end_ = starts_.next();
      if (end_ < begin || end_ > entries_ || (row_ + 1 == rows_ && end_ != entries_)) {
        refuse(fmt::format("indptr is inconsistent, value {} after {} with {} entries", end_, begin,
                           entries_),
               starts_.where());
      }
      float* const dense = out.data() + i * cols_;
      for (std::int64_t entry = begin; entry < end_; ++entry) {
        const std::int64_t col = columns_.next();
        if (col < 0 || col >= cols_) {
          refuse(fmt::format("column {} is not below the column count {}", col, cols_),
                 columns_.where());
        }
        dense[col] += values_.next();
      }
    }
    return count;
  }

  void rewind() override {
    starts_.rewind();
    columns_.rewind();
    values_.rewind();
    row_ = 0;
  }

  std::string where(std::int64_t row) override { return fmt::format("{}, row {}", name_, row); }

 private:
  [[noreturn]] void refuse(const std::string& what, const std::string& where) {
    throw DataError(what, where, "save the matrix again with scipy.sparse.save_npz");
  }

  std::string name_;
  Feed<std::int64_t> starts_;
  Feed<std::int64_t> columns_;
  Feed<float> values_;
  std::int64_t rows_ = 0;
  std::int64_t cols_ = 0;
  std::int64_t entries_ = 0;
  std::int64_t row_ = 0;
  std::int64_t end_ = 0;
};

}  // namespace

std::unique_ptr<TableReader> open_sparse_table(FileSystem& files, const std::string& path) {
  const std::string format = read_npy_string(*open_npz_member(files, path, "format"));
  if (format != "csr") {
    throw DataError(fmt::format("the sparse matrix is in {} format", format), path,
                    "save it as CSR, scipy.sparse.save_npz(FILE, x.tocsr())");
  }
  return std::make_unique<CsrTable>(files, path);
}

}  // namespace ooc
