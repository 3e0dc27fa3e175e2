#include "storage/import/remapped_vertices.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "storage/base/errors.h"
#include "storage/import/decode/text_layout.h"
#include "storage/import/edges/remapped_edges.h"
#include "storage/import/ids/id_array.h"
#include "storage/import/ids/id_table.h"
#include "storage/import/rows/row_placer.h"

namespace ooc {
namespace {

constexpr std::int64_t kBlockIds = 256 << 10;  // read at once
constexpr std::int64_t kLeastRowBytes = 4 << 20;

// The column of ids in the same file as `rows`.
std::string id_column(const std::string& rows, const std::string& column) {
  return parse_text_input(rows).path + ":" + column;
}

}  // namespace

RemappedVertices::RemappedVertices(FileSystem& files, const ImportInputs& inputs,
                                   const RowIds& rows, ImportMemory& memory, const Control& control)
    : files_(files), inputs_(inputs), rows_(rows), memory_(memory), control_(control) {}

std::string RemappedVertices::id_column_of(const std::string& input) const {
  if (inputs_.ids.empty() && rows_.column.empty() && !rows_.sorted) {
    throw UsageError(
        fmt::format("--remap-ids, but nothing says whose the rows of {} are", input),
        "command line",
        "give --ids FILE with the id of each row, --id COLUMN where the table has them, or "
        "--rows-sorted if rows follow the ascending order of the ids in the edges");
  }
  if (!rows_.column.empty() && !is_text_name(input)) {
    throw UsageError(fmt::format("--id {}, but {} is no text", rows_.column, input), "command line",
                     "give --ids FILE with the id of each row");
  }
  return rows_.column;
}

std::unique_ptr<TableReader> RemappedVertices::open_split(const std::string& input) const {
  auto table = open_table(files_, input);
  const bool beside_ids = table->cols() > 1 && is_text_name(input) && !rows_.column.empty();
  if (!beside_ids && !is_mask(*table)) return table;
  TextColumns columns;
  columns.left_out = id_column_of(input);
  return open_table(files_, input, columns);
}

// Empty where the edges list the vertices.
std::string RemappedVertices::list_input() const {
  if (!inputs_.ids.empty()) return inputs_.ids;
  if (rows_.column.empty()) return {};
  const std::string& table = inputs_.features.empty() ? inputs_.labels : inputs_.features;
  return table.empty() ? table : id_column(table, rows_.column);
}

std::unique_ptr<TableReader> RemappedVertices::open_edges(Findings& findings) {
  const std::string list = list_input();
  for (const std::string& input : {inputs_.edges, list}) {
    const auto found = find_string(input);
    if (!found || names_) continue;
    names_ = std::make_unique<StringIds>(memory_.most(), list);
    if (!found->after_integers) continue;
    findings.warnings.emplace_back(
        fmt::format("{} in line {} of {} is no integer, so all ids are taken as strings",
                    quoted_id(found->field), found->line, input));
  }
  if (!list.empty()) list_ = open_ids(list);
  if (list_ && list_->cols() > 1) {
    refuse_columns(*list_, "ids need", "save one id a row");
  }
  auto edges = open_ids(inputs_.edges);
  if (edges->stated_vertices()) {
    throw DataError("--remap-ids, but a matrix numbers its rows already", edges->name(),
                    "leave out --remap-ids");
  }
  return edges;
}

// A list in .txt, as exports and results have it, has one id in a line, as it is.
TextInput RemappedVertices::text_of(const std::string& input) const {
  TextInput text = parse_text_input(input);
  text.columns.whole_lines =
      input == inputs_.ids && (text.path.ends_with(".txt") || text.path.ends_with(".txt.gz"));
  return text;
}

bool RemappedVertices::holds_strings(const std::string& input) const {
  return open_edge_table(files_, input)->kind() == ElementKind::kString;
}

// Ids are strings as soon as one of them is no integer.
std::optional<StringIdFound> RemappedVertices::find_string(const std::string& input) const {
  const TextInput text = text_of(input);
  if (text.path.empty()) {
    const bool strings = !input.empty() && holds_strings(input);
    return strings ? std::optional<StringIdFound>(StringIdFound{}) : std::nullopt;
  }
  return find_string_id(open_byte_source(files_, text.path), text.columns, NumberKind::kIntegers,
                        control_);
}

std::unique_ptr<TableReader> RemappedVertices::open_ids(const std::string& input) {
  if (!names_) return open_edge_table(files_, input);
  const TextInput text = text_of(input);
  if (text.path.empty()) {
    if (holds_strings(input)) return open_id_array(open_array_source(files_, input), {}, *names_);
    throw DataError("numbers where other files' ids are strings", input,
                    "write the ids into a text file, or as an array of strings, x.astype('str')");
  }
  return open_id_table(open_byte_source(files_, text.path), input, text.columns,
                       find_string(input) ? HeaderRule::kNames : HeaderRule::kNoNumbers, *names_);
}

bool RemappedVertices::may_lack_rows(const TableReader& rows) const {
  return !rows_.column.empty() && id_column(rows.name(), rows_.column) != list_->name();
}

void RemappedVertices::collect(TableEdgeSource& edges, std::string scratch) {
  scratch_ = std::move(scratch);
  edges.free_ids();
  EdgeBlock block;
  std::vector<std::int64_t> listed(list_ ? kBlockIds : 0);
  const IdStream ids = [&]() -> std::span<const std::int64_t> {
    if (!list_)
      return edges.next(kBlockIds, block) ? ids_of(block.edges) : std::span<std::int64_t>();
    return std::span(listed).first(static_cast<std::size_t>(list_->read(std::span(listed))));
  };
  if (names_) {
    collect_names(ids);
  } else {
    ids_ = std::make_unique<OriginalIds>(
        files_, OriginalIds::Options{scratch_ + "ids", list_ ? list_->name() : "", memory_.free()},
        ids, list_ ? list_->known_rows().value_or(0) : 2 * edges.known_edges().value_or(0),
        control_);
  }
}

void RemappedVertices::collect_names(const IdStream& ids) {
  double read = 0;
  for (auto block = ids(); !block.empty(); block = ids()) {
    read += static_cast<double>(block.size());
    control_.step("collecting ids", read, 0);
  }
}

std::vector<MemoryPart> RemappedVertices::memory_parts(std::int64_t tables) const {
  std::vector<MemoryPart> parts = {
      {names_ ? names_->memory_bytes() : OriginalIds::memory_for(ids_->size()), "the ids"}};
  if (!list_) return parts;
  const std::int64_t ids_of_rows = inputs_.ids.empty() ? std::max<std::int64_t>(1, tables) : 1;
  constexpr std::int64_t kBits = 2;  // of each vertex: which ones have come, which ones have a row
  parts.push_back({(ids_of_rows * std::int64_t{sizeof(VertexIndex)} * 8 + kBits) * count() / 8,
                   "the vertices of rows"});
  parts.push_back({tables * kLeastRowBytes, "rows on their way"});
  return parts;
}

void RemappedVertices::finish(TableEdgeSource& edges, Findings& findings) {
  if (names_) names_->finish();
  if (list_) {
    row_vertices(*list_);
    return;
  }
  edges.rewind();
  // A header of unusual names looks like an edge.
  if (!names_ || names_->first_uses() != 2 || names_->size() == 2) return;
  findings.warnings.emplace_back(
      fmt::format("the ids of the first edge in {} occur in no other: if it is a header, take it "
                  "out",
                  edges.name()));
}

std::unique_ptr<EdgeSource> RemappedVertices::spool(TableEdgeSource& edges) {
  const std::size_t data_bytes = edges.data().bytes();
  const auto write = [&](EdgeSource& dense) {
    return std::make_unique<SpooledEdgeSource>(files_, scratch_ + "edges", dense, data_bytes,
                                               control_);
  };
  if (names_) return write(edges);
  RemappedEdgeSource dense(edges, edges.name(), *ids_, data_bytes, memory_.free(), control_);
  return write(dense);
}

std::string RemappedVertices::name_of(std::int64_t dense) const {
  if (names_) return quoted_id((*names_)[dense]);
  std::int64_t id = 0;
  ids_->read(dense, std::span(&id, 1));
  return fmt::to_string(id);
}

// The vertex of each row that a table of ids, or one beside it, has.
std::shared_ptr<const RowVertices> RemappedVertices::row_vertices(const TableReader& rows) {
  const std::string input =
      inputs_.ids.empty() ? id_column(rows.name(), rows_.column) : inputs_.ids;
  auto& found = row_vertices_[input];
  if (found) return found;
  const auto table = open_ids(input);
  table->count_rows(control_);
  const std::int64_t count = table->rows();
  auto vertices = std::make_shared<RowVertices>();
  vertices->reserve(static_cast<std::size_t>(std::min(count, size())));
  std::vector<bool> seen(static_cast<std::size_t>(size()), false);
  const std::int64_t fitting = memory_.free() / (sizeof(std::int64_t) + OriginalIds::kReplaceBytes);
  std::vector<std::int64_t> block(static_cast<std::size_t>(std::clamp(count, kBlockIds, fitting)));
  while (const std::int64_t read = table->read(std::span(block))) {
    const auto ids = std::span(block).first(static_cast<std::size_t>(read));
    if (ids_) ids_->replace(ids, input);
    for (const std::int64_t dense : ids) {
      if (seen[static_cast<std::size_t>(dense)]) {
        throw DataError(fmt::format("vertex id {} is there twice", name_of(dense)),
                        table->where(static_cast<std::int64_t>(vertices->size())),
                        "give one row for each vertex");
      }
      seen[static_cast<std::size_t>(dense)] = true;
      vertices->push_back(static_cast<VertexIndex>(dense));
    }
    control_.step("matching rows", static_cast<double>(vertices->size()),
                  static_cast<double>(count));
  }
  return found = std::move(vertices);
}

void RemappedVertices::sort_rows(std::unique_ptr<TableReader>& rows, const std::string& part) {
  if (!rows || !list_) return;
  RowsByVertexOptions options;
  options.row_vertices = row_vertices(*rows);
  options.vertices = size();
  options.scratch = scratch_ + "rows-" + part;
  const std::int64_t more = memory_.most() / 8;  // than what memory_parts() has
  memory_.take({{more, "rows on their way"}});
  options.memory_bytes = kLeastRowBytes + more;
  rows = rows_by_vertex(files_, std::move(rows), options);
}

void RemappedVertices::sort_values(VertexValues& values) {
  values.adapt([this](std::unique_ptr<TableReader>& table, const std::string& part, bool rows) {
    if (rows) return sort_rows(table, part);
    if (names_) table = open_ids(table->name());
  });
}

void RemappedVertices::write(DatasetWriter& writer, std::span<const VertexIndex> order,
                             std::span<const VertexIndex> new_ids) const {
  if (names_) {
    writer.write_original_names(names_->text_bytes(), [&](std::int64_t row) {
      return (*names_)[order.empty() ? row : order[static_cast<std::size_t>(row)]];
    });
    return;
  }
  RowPlacer placer(
      files_, writer.original_ids(), new_ids,
      {writer.scratch_path("original_ids"), size(), sizeof(std::int64_t), memory_.free()});
  std::vector<std::int64_t> part;
  for (std::int64_t begin = 0; begin < size(); begin += std::ssize(part)) {
    part.resize(static_cast<std::size_t>(std::min<std::int64_t>(kBlockIds, size() - begin)));
    ids_->read(begin, part);
    placer.add(std::as_bytes(std::span(part)));
  }
  placer.finish("writing ids", control_);
  writer.finish_original_ids();
}

}  // namespace ooc
