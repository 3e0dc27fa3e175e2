#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "storage/base/errors.h"
#include "storage/import/formats/array_feed.h"
#include "storage/import/formats/npy.h"
#include "storage/import/formats/npz.h"

namespace ooc {
namespace {

constexpr std::string_view kSaveAgain = "save the matrix again with scipy.sparse.save_npz";

std::unique_ptr<TableReader> open_member(FileSystem& files, const std::string& path,
                                         const std::string& member) {
  return open_npy_table(open_npz_member(files, path, member));
}

struct Shape {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
};

Shape read_shape(FileSystem& files, const std::string& path, const std::string& prefix) {
  const auto shape = open_member(files, path, prefix + "shape");
  std::array<std::int64_t, 3> extents = {};
  if (shape->read(std::span(extents)) != 2 || extents[0] < 0 || extents[1] < 0) {
    throw DataError("the shape is not that of a matrix", shape->name(), kSaveAgain);
  }
  return {extents[0], extents[1]};
}

class CsrTable final : public TableReader {
 public:
  CsrTable(FileSystem& files, const std::string& path, const std::string& prefix)
      : name_(path),
        starts_(open_member(files, path, prefix + "indptr")),
        columns_(open_member(files, path, prefix + "indices")),
        values_(open_member(files, path, prefix + "data")) {
    const Shape shape = read_shape(files, path, prefix);
    rows_ = shape.rows;
    cols_ = shape.cols;
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
    throw DataError(what, where, kSaveAgain);
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

// What edges of a matrix have in common as a table.
class EdgeTable : public TableReader {
 public:
  EdgeTable(std::string name, std::int64_t edges, std::optional<std::int64_t> vertices)
      : name_(std::move(name)), edges_(edges), vertices_(vertices) {}

  const std::string& name() const override { return name_; }
  std::int64_t rows() override { return edges_; }
  std::optional<std::int64_t> known_rows() const override { return edges_; }
  std::int64_t cols() const override { return 2; }
  ElementKind kind() const override { return ElementKind::kInteger; }
  std::optional<std::int64_t> stated_vertices() const override { return vertices_; }
  std::int64_t read(std::span<float>) override {
    throw DataError("a matrix of edges where numbers are needed", name_, "give another file");
  }
  std::string where(std::int64_t row) override { return fmt::format("{}, entry {}", name_, row); }

  std::int64_t read(std::span<std::int64_t> out) override {
    const std::int64_t count = std::min(static_cast<std::int64_t>(out.size()) / 2, edges_ - edge_);
    if (count == 0 && !std::exchange(ended_, true)) check_end();
    for (std::int64_t i = 0; i < count; ++i, ++edge_) take(edge_, out.data() + 2 * i);
    return count;
  }
  void rewind() override {
    edge_ = 0;
    ended_ = false;
  }

 protected:
  // The next edge, source and destination.
  virtual void take(std::int64_t edge, std::int64_t* ends) = 0;
  // After the last one.
  virtual void check_end() {}

 private:
  std::string name_;
  std::int64_t edges_;
  std::optional<std::int64_t> vertices_;
  std::int64_t edge_ = 0;
  bool ended_ = false;
};

// Two vectors, of sources and of destinations.
class PairTable final : public EdgeTable {
 public:
  PairTable(const std::string& name, std::unique_ptr<TableReader> sources,
            std::unique_ptr<TableReader> destinations, std::optional<std::int64_t> vertices)
      : EdgeTable(name, sources->rows(), vertices),
        sources_(std::move(sources)),
        destinations_(std::move(destinations)) {
    const std::int64_t other = destinations_.table().rows();
    if (other == rows()) return;
    throw DataError(fmt::format("{} sources but {} destinations", rows(), other), name,
                    "give one of each for every edge");
  }
  void rewind() override {
    EdgeTable::rewind();
    sources_.rewind();
    destinations_.rewind();
  }

 private:
  void take(std::int64_t, std::int64_t* ends) override {
    ends[0] = sources_.next();
    ends[1] = destinations_.next();
  }

  Feed<std::int64_t> sources_;
  Feed<std::int64_t> destinations_;
};

// Entries of a CSR matrix, or of a CSC one.
class CompressedEdges final : public EdgeTable {
 public:
  CompressedEdges(const std::string& name, std::unique_ptr<TableReader> starts,
                  std::unique_ptr<TableReader> indices, std::int64_t vertices, bool by_rows)
      : EdgeTable(name, indices->rows(), vertices),
        starts_(std::move(starts)),
        indices_(std::move(indices)),
        by_rows_(by_rows) {
    if (starts_.table().rows() == vertices + 1) return;
    throw DataError(fmt::format("indptr has {} elements where {} rows need {}",
                                starts_.table().rows(), vertices, vertices + 1),
                    name, kSaveAgain);
  }
  void rewind() override {
    EdgeTable::rewind();
    starts_.rewind();
    indices_.rewind();
    row_ = -1;
    end_ = 0;
  }

 private:
  void take(std::int64_t edge, std::int64_t* ends) override {
    while (row_ < 0 || edge == end_) {
      const std::int64_t begin = end_;
      if (++row_ == 0 && starts_.next() != 0) refuse("indptr does not start at 0");
      if (row_ == *stated_vertices()) refuse("indptr ends before the entries");
      end_ = starts_.next();
      if (end_ < begin || end_ > rows())
        refuse(fmt::format("indptr goes from {} to {}", begin, end_));
    }
    const std::int64_t index = indices_.next();
    ends[0] = by_rows_ ? row_ : index;
    ends[1] = by_rows_ ? index : row_;
  }

  void check_end() override {
    for (; row_ + 1 < *stated_vertices(); ++row_) {
      if (row_ < 0 && starts_.next() != 0) refuse("indptr does not start at 0");
      const std::int64_t start = starts_.next();
      if (start != rows()) refuse(fmt::format("indptr goes on with {} after {}", start, rows()));
    }
  }

  [[noreturn]] void refuse(const std::string& what) {
    throw DataError(what, starts_.where(), kSaveAgain);
  }

  Feed<std::int64_t> starts_;
  Feed<std::int64_t> indices_;
  bool by_rows_;
  std::int64_t row_ = -1;
  std::int64_t end_ = 0;  // of the row
};

// "csr" where an archive of other arrays, too, doesn't say.
std::string format_of(FileSystem& files, const std::string& path, const std::string& prefix) {
  return prefix.empty() ? read_npy_string(*open_npz_member(files, path, "format")) : "csr";
}

}  // namespace

std::unique_ptr<TableReader> open_sparse_table(FileSystem& files, const std::string& path,
                                               const std::string& prefix) {
  const std::string format = format_of(files, path, prefix);
  if (format != "csr") {
    throw DataError(fmt::format("the sparse matrix is in {} format", format), path,
                    "save it as CSR, scipy.sparse.save_npz(FILE, x.tocsr())");
  }
  return std::make_unique<CsrTable>(files, path, prefix);
}

std::unique_ptr<TableReader> open_sparse_edges(FileSystem& files, const std::string& path,
                                               const std::string& prefix) {
  const std::string format = format_of(files, path, prefix);
  const Shape shape = read_shape(files, path, prefix);
  if (shape.rows != shape.cols) {
    throw DataError(fmt::format("a matrix of {} rows and {} columns where edges are needed",
                                shape.rows, shape.cols),
                    path, "a graph's matrix has a row and a column for each vertex");
  }
  const auto member = [&](const char* name) { return open_member(files, path, prefix + name); };
  if (format == "coo") {
    return std::make_unique<PairTable>(path, member("row"), member("col"), shape.rows);
  }
  if (format != "csr" && format != "csc") {
    throw DataError(fmt::format("the sparse matrix is in {} format", format), path,
                    "save it as CSR, scipy.sparse.save_npz(FILE, x.tocsr())");
  }
  auto indices = member("indices");
  const std::vector<std::string> members = npz_members(files, path);
  if (std::find(members.begin(), members.end(), prefix + "data") != members.end()) {
    const std::int64_t values = member("data")->rows();
    if (values != indices->rows()) {
      throw DataError(fmt::format("indices has {} elements but data {}", indices->rows(), values),
                      path, kSaveAgain);
    }
  }
  return std::make_unique<CompressedEdges>(path, member("indptr"), std::move(indices), shape.rows,
                                           format == "csr");
}

std::unique_ptr<TableReader> open_pairs(FileSystem& files, const std::string& path,
                                        const std::string& sources,
                                        const std::string& destinations) {
  return std::make_unique<PairTable>(fmt::format("{}:{},{}", path, sources, destinations),
                                     open_member(files, path, sources),
                                     open_member(files, path, destinations), std::nullopt);
}

}  // namespace ooc
