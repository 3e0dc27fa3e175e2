#include "storage/import/edge_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "storage/errors.h"
#include "storage/manifest.h"

namespace ooc {
namespace {

constexpr std::int64_t kCredibleVertices = 1'000'000;  // always; beyond, 1000 for every edge
constexpr std::int64_t kSpoolEdges = 256 << 10;        // at once

// Makes the table [E, 2] where it is [2, E].
void orient(TableReader& table) {
  if (table.cols() == 2) return;
  if (table.cols() == 0 && table.rows() == 0) return;  // an empty text file
  if (table.rows() == 2 && table.transpose()) return;
  const std::string_view remedy =
      !is_text_name(table.name()) ? "save them as [E, 2] or [2, E]"
      : table.cols() > 2 ? "keep the first two columns; weights go into a file of their own"
                         : "write a source and a destination in every line";
  throw DataError(
      fmt::format("edges need two columns, source and destination, not {}", table.cols()),
      fmt::format("{}, shape ({}, {})", table.name(), table.rows(), table.cols()), remedy);
}

void check_cols(const TableReader* table, std::int64_t most, std::string_view what) {
  if (table == nullptr || (table->cols() >= 1 && table->cols() <= most)) return;
  throw DataError(fmt::format("{} of {} columns", what, table->cols()), table->name(),
                  most == 1 ? "give one value an edge" : fmt::format("give 1 to {} columns", most));
}

[[noreturn]] void refuse_rows(const TableReader& table, const TableReader& edges) {
  throw DataError("not as many rows as there are edges", table.name(),
                  fmt::format("give one row for each of the edges in {}", edges.name()));
}

}  // namespace

TableEdgeSource::TableEdgeSource(EdgeTables tables, std::optional<std::int64_t> vertices)
    : tables_(std::move(tables)), vertices_(vertices) {
  orient(*tables_.edges);
  check_cols(tables_.weights.get(), 1, "edge weights");
  check_cols(tables_.types.get(), 1, "edge types");
  check_cols(tables_.features.get(), kMaxEdgeFeatureCols, "edge features");
  data_.weights = tables_.weights != nullptr;
  data_.types = tables_.types != nullptr;
  data_.feature_cols = tables_.features ? tables_.features->cols() : 0;
  for (const auto* table : {&tables_.weights, &tables_.types, &tables_.features}) {
    if (!*table || !(*table)->known_rows() || !known_edges()) continue;
    if (*(*table)->known_rows() != *known_edges()) refuse_rows(**table, *tables_.edges);
  }
}

std::optional<std::int64_t> TableEdgeSource::known_edges() const {
  return tables_.edges->known_rows();
}

void TableEdgeSource::rewind() {
  for (const auto* table : {&tables_.edges, &tables_.weights, &tables_.types, &tables_.features}) {
    if (*table) (*table)->rewind();
  }
  row_ = 0;
  number_ = 0;
}

bool TableEdgeSource::next(std::int64_t max_edges, EdgeBlock& block) {
  block.edges.resize(static_cast<std::size_t>(max_edges));
  static_assert(sizeof(Edge) == 2 * sizeof(std::int64_t));
  const std::span<std::int64_t> ids(reinterpret_cast<std::int64_t*>(block.edges.data()),
                                    block.edges.size() * 2);
  const std::int64_t count = tables_.edges->cols() == 0 ? 0 : tables_.edges->read(ids);
  block.edges.resize(static_cast<std::size_t>(count));
  block.number = number_++;
  if (count == 0) {
    check_ends();
    return false;
  }
  check_ids(block.edges);
  read_data(block);
  row_ += count;
  return true;
}

void TableEdgeSource::check_ids(std::span<const Edge> edges) {
  const VertexId limit = vertices_.value_or(std::numeric_limits<VertexId>::max());
  VertexId least = 0, largest = -1;
  for (const Edge& edge : edges) {
    least = std::min({least, edge.source, edge.destination});
    largest = std::max({largest, edge.source, edge.destination});
  }
  largest_id_ = std::max(largest_id_, largest);
  if (least >= 0 && largest < limit) return;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    for (const VertexId id : {edges[i].source, edges[i].destination}) {
      if (id < 0 || id >= limit) refuse_id(id, row_ + static_cast<std::int64_t>(i));
    }
  }
}

void TableEdgeSource::refuse_id(VertexId id, std::int64_t row) const {
  const std::string what =
      id < 0 ? fmt::format("vertex id {} is negative", id)
             : fmt::format("vertex id {} is not below the vertex count {}", id, *vertices_);
  throw DataError(what, tables_.edges->where(row), "ids go from 0 to the vertex count less one");
}

// The next rows into floats_; all of them are finite.
std::int64_t TableEdgeSource::read_floats(TableReader& table, std::int64_t cols,
                                          std::int64_t wanted) {
  floats_.resize(static_cast<std::size_t>(wanted * cols));
  const std::int64_t count = table.read(std::span<float>(floats_));
  for (std::int64_t i = 0; i < count * cols; ++i) {
    const float value = floats_[static_cast<std::size_t>(i)];
    if (std::isfinite(value)) continue;
    throw DataError(fmt::format("{} is no finite number", value), table.where(row_ + i / cols),
                    "correct the value");
  }
  return count;
}

void TableEdgeSource::read_data(EdgeBlock& block) {
  const std::size_t bytes = data_.bytes();
  const auto count = static_cast<std::int64_t>(block.edges.size());
  block.data.resize(block.edges.size() * bytes);
  const auto place = [&](std::int64_t i) {
    return block.data.data() + i * static_cast<std::int64_t>(bytes);
  };
  if (tables_.weights) {
    if (read_floats(*tables_.weights, 1, count) < count)
      refuse_rows(*tables_.weights, *tables_.edges);
    for (std::int64_t i = 0; i < count; ++i) std::memcpy(place(i), &floats_[i], sizeof(float));
  }
  if (tables_.types) {
    types_.resize(block.edges.size());
    if (tables_.types->read(std::span<std::int64_t>(types_)) < count) {
      refuse_rows(*tables_.types, *tables_.edges);
    }
    for (std::int64_t i = 0; i < count; ++i) {
      if (types_[i] < 0 || types_[i] >= kMaxEdgeTypes) {
        throw DataError(fmt::format("{} is no edge type", types_[i]),
                        tables_.types->where(row_ + i),
                        fmt::format("number the types from 0 to {} at most", kMaxEdgeTypes - 1));
      }
      largest_type_ = std::max(largest_type_, types_[i]);
      const auto type = static_cast<std::uint16_t>(types_[i]);
      std::memcpy(place(i) + data_.type_offset(), &type, sizeof(type));
    }
  }
  if (!tables_.features) return;
  const std::int64_t cols = data_.feature_cols;
  if (read_floats(*tables_.features, cols, count) < count) {
    refuse_rows(*tables_.features, *tables_.edges);
  }
  for (std::int64_t i = 0; i < count; ++i) {
    std::memcpy(place(i) + data_.feature_offset(), &floats_[i * cols], data_.feature_bytes());
  }
}

// What belongs to the edges must end with them.
void TableEdgeSource::check_ends() {
  if (tables_.types) {
    types_.resize(1);
    if (tables_.types->read(std::span<std::int64_t>(types_)) > 0) {
      refuse_rows(*tables_.types, *tables_.edges);
    }
  }
  for (const auto* table : {&tables_.weights, &tables_.features}) {
    if (*table && read_floats(**table, (*table)->cols(), 1) > 0) {
      refuse_rows(**table, *tables_.edges);
    }
  }
}

SpooledEdgeSource::SpooledEdgeSource(FileSystem& files, std::string path, EdgeSource& source,
                                     std::size_t data_bytes, const Control& control)
    : files_(files), path_(std::move(path)), data_bytes_(data_bytes) {
  const auto file = files_.create(path_);
  const auto record_bytes = static_cast<std::uint64_t>(sizeof(Edge) + data_bytes);
  const auto expected = static_cast<double>(source.known_edges().value_or(0));
  EdgeBlock block;
  // Blocks of kSpoolEdges, edges before data, the last one shorter.
  while (source.next(kSpoolEdges, block)) {
    const std::uint64_t offset = static_cast<std::uint64_t>(edges_) * record_bytes;
    file->write_at(offset, std::as_bytes(std::span(block.edges)));
    if (!block.data.empty()) {
      file->write_at(offset + block.edges.size() * sizeof(Edge), block.data);
    }
    edges_ += static_cast<std::int64_t>(block.edges.size());
    control.step("reading edges", static_cast<double>(edges_), expected);
  }
  file->close();
  file_ = files_.open(path_);
}

SpooledEdgeSource::~SpooledEdgeSource() {
  file_.reset();
  try {
    files_.remove_all(path_);
  } catch (const Error&) {  // scratch: whoever owns its directory removes that, too
  }
}

void SpooledEdgeSource::rewind() {
  row_ = 0;
  number_ = 0;
}

bool SpooledEdgeSource::next(std::int64_t max_edges, EdgeBlock& block) {
  const std::int64_t count =
      std::min(edges_ - row_, std::max(max_edges / kSpoolEdges, std::int64_t{1}) * kSpoolEdges);
  if (count <= 0) return false;
  block.number = number_++;
  block.edges.resize(static_cast<std::size_t>(count));
  block.data.resize(static_cast<std::size_t>(count) * data_bytes_);
  for (std::int64_t done = 0; done < count; done += kSpoolEdges) {
    const auto part = static_cast<std::size_t>(std::min(kSpoolEdges, count - done));
    const auto first = static_cast<std::size_t>(done);
    const std::uint64_t offset =
        static_cast<std::uint64_t>(row_ + done) * (sizeof(Edge) + data_bytes_);
    read_exact(*file_, offset, std::as_writable_bytes(std::span(block.edges).subspan(first, part)));
    read_exact(*file_, offset + part * sizeof(Edge),
               std::span(block.data).subspan(first * data_bytes_, part * data_bytes_));
  }
  row_ += count;
  return true;
}

std::int64_t vertices_of_largest_id(VertexId largest, std::int64_t edges, const std::string& name) {
  if (largest >= std::max(kCredibleVertices, 1000 * edges)) {
    throw DataError(fmt::format("the largest vertex id {} does not fit {} edges", largest, edges),
                    name, "give the vertex count with --vertices if that is meant");
  }
  return largest + 1;
}

}  // namespace ooc
