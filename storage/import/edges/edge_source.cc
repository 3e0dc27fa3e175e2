#include "storage/import/edges/edge_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "storage/base/errors.h"
#include "storage/import/decode/text_layout.h"

namespace ooc {
namespace {

constexpr std::int64_t kCredibleVertices = 1'000'000;  // always; beyond, 1000 for every edge
constexpr std::size_t kSpoolBlockBytes = 4 << 20;

// Makes the table [E, 2] where it is [2, E].
void orient(TableReader& table) {
  if (table.cols() == 2) return;
  if (table.cols() == 0 && table.rows() == 0) return;  // an empty text file
  if (table.rows() == 2 && table.transpose()) return;
  const bool text = is_text_name(table.name());
  const std::string file = text ? parse_text_input(table.name()).path : table.name();
  const std::string remedy =
      !text ? "save them as [E, 2] or [2, E]"
      : table.cols() > 2
          ? fmt::format("choose two, {}:1,2; a weight of edges is --edge-weights {}:3", file, file)
          : "write a source and a destination in every line";
  throw DataError(
      fmt::format("edges need two columns, source and destination, not {}", table.cols()),
      first_look(table), remedy);
}

[[noreturn]] void refuse_rows(TableReader& table, TableReader& edges) {
  throw DataError(fmt::format("{} rows but {} edges", table.rows(), edges.rows()), table.name(),
                  fmt::format("give one row for each of the edges in {}", edges.name()));
}

}  // namespace

TableEdgeSource::TableEdgeSource(std::unique_ptr<TableReader> edges, EdgeDataTables data,
                                 std::optional<std::int64_t> vertices, std::string vertices_from)
    : edges_(std::move(edges)),
      tables_(std::move(data)),
      vertices_(vertices),
      vertices_from_(std::move(vertices_from)) {
  orient(*edges_);
  OOC_CHECK(!tables_.weights || tables_.weights->cols() <= 1);
  data_.weights = tables_.weights != nullptr;
  data_.types = tables_.types != nullptr;
  data_.feature_cols = tables_.features ? tables_.features->cols() : 0;
  for (const auto* table : {&tables_.weights, &tables_.types, &tables_.features}) {
    if (!*table || !(*table)->known_rows() || !known_edges()) continue;
    if (*(*table)->known_rows() != *known_edges()) refuse_rows(**table, *edges_);
  }
}

std::optional<std::int64_t> TableEdgeSource::known_edges() const { return edges_->known_rows(); }

void TableEdgeSource::rewind() {
  for (const auto* table : {&edges_, &tables_.weights, &tables_.types, &tables_.features}) {
    if (*table) (*table)->rewind();
  }
  row_ = 0;
  number_ = 0;
  weight_signs_ = {};
}

std::int64_t TableEdgeSource::count_edges(const Control& control) {
  edges_->count_rows(control);
  return edges_->rows();
}

bool TableEdgeSource::next(std::int64_t max_edges, EdgeBlock& block) {
  // One row is asked for after the last one, so that the reader looks for what shouldn't be there.
  if (const auto known = known_edges()) {
    max_edges = std::clamp<std::int64_t>(*known - row_, 1, max_edges);
  }
  block.edges.resize(static_cast<std::size_t>(max_edges));
  const std::int64_t count = edges_->cols() == 0 ? 0 : edges_->read(ids_of(block.edges));
  block.edges.resize(static_cast<std::size_t>(count));
  block.number = number_++;
  if (count == 0) {
    check_ends();
    return false;
  }
  if (!free_ids_) check_ids(block.edges);
  read_data(block);
  row_ += count;
  return true;
}

void TableEdgeSource::check_ids(std::span<const Edge> edges) {
  const VertexId limit = vertices_.value_or(kMaxVertices);
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
      id < 0      ? fmt::format("vertex id {} is negative", id)
      : vertices_ ? fmt::format("vertex id {} is not below the vertex count {}{}", id, *vertices_,
                                vertices_from_.empty() ? "" : " (" + vertices_from_ + ")")
                  : fmt::format("vertex id {} is not below 2^32", id);
  throw DataError(what, edges_->where(row),
                  "ids go from 0 to the vertex count less one; if yours start at 1 or are any "
                  "numbers, give --remap-ids");
}

// The next rows of a table into the records, `offset` bytes from their begins.
void TableEdgeSource::read_floats(TableReader& table, EdgeBlock& block, std::size_t offset) {
  const auto cols = static_cast<std::size_t>(table.cols());
  floats_.resize(block.edges.size() * cols);
  const std::int64_t count = read_edge_floats(table, row_, floats_);
  if (count < static_cast<std::int64_t>(block.edges.size())) refuse_rows(table, *edges_);
  for (std::size_t i = 0; i < block.edges.size(); ++i) {
    std::memcpy(block.data.data() + i * data_.bytes() + offset, &floats_[i * cols],
                cols * sizeof(float));
  }
}

void TableEdgeSource::read_data(EdgeBlock& block) {
  block.data.resize(block.edges.size() * data_.bytes());
  if (tables_.weights) {
    read_floats(*tables_.weights, block, 0);
    count_signs();
  }
  if (tables_.features) read_floats(*tables_.features, block, data_.feature_offset());
  if (!tables_.types) return;
  types_.resize(block.edges.size());
  const std::int64_t count = read_edge_types(*tables_.types, row_, types_);
  if (count < static_cast<std::int64_t>(types_.size())) refuse_rows(*tables_.types, *edges_);
  for (std::size_t i = 0; i < types_.size(); ++i) {
    largest_type_ = std::max<std::int64_t>(largest_type_, types_[i]);
    std::memcpy(block.data.data() + i * data_.bytes() + data_.type_offset(), &types_[i],
                sizeof(types_[i]));
  }
}

// Of the weights that were read last.
void TableEdgeSource::count_signs() {
  for (const float weight : floats_) {
    weight_signs_.negative += weight < 0 ? 1 : 0;
    weight_signs_.zero += weight == 0 ? 1 : 0;
  }
}

// What belongs to the edges must end with them.
void TableEdgeSource::check_ends() {
  types_.resize(1);
  if (tables_.types && read_edge_types(*tables_.types, row_, types_) > 0) {
    refuse_rows(*tables_.types, *edges_);
  }
  for (const auto* table : {&tables_.weights, &tables_.features}) {
    if (!*table) continue;
    floats_.resize(static_cast<std::size_t>((*table)->cols()));
    if (read_edge_floats(**table, row_, floats_) > 0) refuse_rows(**table, *edges_);
  }
}

// Blocks of block_edges_, edges before what they carry, the last one shorter.
SpooledEdgeSource::SpooledEdgeSource(FileSystem& files, std::string path, EdgeSource& source,
                                     std::size_t data_bytes, const Control& control)
    : files_(files),
      path_(std::move(path)),
      data_bytes_(data_bytes),
      block_edges_(static_cast<std::int64_t>(kSpoolBlockBytes / (sizeof(Edge) + data_bytes)) + 1) {
  const auto file = files_.create(path_);
  const auto expected = static_cast<double>(source.known_edges().value_or(0));
  EdgeBlock block;
  while (source.next(block_edges_, block)) {
    const std::uint64_t offset = static_cast<std::uint64_t>(edges_) * (sizeof(Edge) + data_bytes_);
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
  const std::int64_t count = std::min(edges_ - row_, max_edges);
  if (count <= 0) return false;
  block.number = number_++;
  block.edges.resize(static_cast<std::size_t>(count));
  block.data.resize(static_cast<std::size_t>(count) * data_bytes_);
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t begin = (row_ + done) / block_edges_ * block_edges_;  // of its block
    const std::int64_t in_block = std::min(block_edges_, edges_ - begin);
    const std::int64_t skipped = row_ + done - begin;
    const std::int64_t part = std::min(in_block - skipped, count - done);
    const auto first = static_cast<std::size_t>(done), size = static_cast<std::size_t>(part);
    const auto offset = static_cast<std::uint64_t>(begin) * (sizeof(Edge) + data_bytes_);
    read_exact(*file_, offset + static_cast<std::uint64_t>(skipped) * sizeof(Edge),
               std::as_writable_bytes(std::span(block.edges).subspan(first, size)));
    read_exact(*file_,
               offset + static_cast<std::uint64_t>(in_block) * sizeof(Edge) +
                   static_cast<std::uint64_t>(skipped) * data_bytes_,
               std::span(block.data).subspan(first * data_bytes_, size * data_bytes_));
    done += part;
  }
  row_ += count;
  return true;
}

std::int64_t vertices_of_largest_id(VertexId largest, std::int64_t edges, const std::string& name) {
  if (largest >= std::max(kCredibleVertices, 1000 * edges)) {
    throw DataError(fmt::format("the largest vertex id {} does not fit {} edges", largest, edges),
                    name,
                    "give --remap-ids if ids are any numbers, or the vertex count with --vertices "
                    "if that is meant");
  }
  return largest + 1;
}

}  // namespace ooc
