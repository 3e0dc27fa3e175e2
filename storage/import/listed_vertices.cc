#include "storage/import/listed_vertices.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string_view>

#include "storage/base/errors.h"
#include "storage/dataset/original_names.h"
#include "storage/import/decode/byte_source.h"
#include "storage/import/decode/text_layout.h"
#include "storage/import/formats/table_reader.h"
#include "storage/import/ids/id_array.h"
#include "storage/import/ids/id_table.h"
#include "storage/import/ids/string_ids.h"
#include "storage/import/ids/unknown_ids.h"
#include "storage/import/values/labels_input.h"

namespace ooc {
namespace {

constexpr std::int64_t kRowsAtOnce = 1 << 16;
constexpr const char* kPhase = "reading ids";

std::vector<std::int64_t> read_ids(TableReader& table, const Control& control) {
  if (is_mask(table)) {
    throw DataError("a mask lies where ids of vertices are needed", table.name(),
                    "write the ids, such as by numpy.nonzero()");
  }
  if (table.cols() != 1) refuse_columns(table, "a list of ids needs", "save one vector of ids");
  std::vector<std::int64_t> ids, block(kRowsAtOnce);
  while (const std::int64_t count = table.read(std::span<std::int64_t>(block))) {
    ids.insert(ids.end(), block.begin(), block.begin() + count);
    control.step(kPhase, static_cast<double>(ids.size()),
                 static_cast<double>(table.known_rows().value_or(0)));
  }
  return ids;
}

[[noreturn]] void refuse_unknown(const std::vector<std::string>& ids, const Dataset& dataset,
                                 const std::string& input) {
  const std::size_t named = std::min(ids.size(), kMostUnknownNamed);
  throw DataError(unknown_ids(std::span(ids).first(named), dataset.path()), input,
                  "list ids of the dataset's vertices");
}

std::vector<std::uint32_t> by_number(FileSystem& files, const Dataset& dataset,
                                     const std::string& input, const Control& control) {
  std::vector<std::int64_t> ids = read_ids(*open_table(files, input), control);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  const VertexTensorFile* names = dataset.tensor("original_ids");
  if (names == nullptr) names = dataset.tensor("ids");
  std::vector<std::uint32_t> vertices;
  std::vector<bool> is_known(ids.size());
  std::vector<std::int64_t> rows(kRowsAtOnce);
  for (std::int64_t first = 0; first < dataset.vertices(); first += kRowsAtOnce) {
    control.step("finding vertices", static_cast<double>(first),
                 static_cast<double>(dataset.vertices()));
    const std::int64_t count = std::min(kRowsAtOnce, dataset.vertices() - first);
    names->read_rows(first, count, rows.data());
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t id = rows[static_cast<std::size_t>(i)];
      const auto found = std::lower_bound(ids.begin(), ids.end(), id);
      if (found == ids.end() || *found != id) continue;
      is_known[static_cast<std::size_t>(found - ids.begin())] = true;
      vertices.push_back(static_cast<std::uint32_t>(first + i));
    }
  }
  std::vector<std::string> unknown;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (!is_known[i]) unknown.push_back(fmt::to_string(ids[i]));
  }
  if (!unknown.empty()) refuse_unknown(unknown, dataset, input);
  return vertices;
}

std::unique_ptr<TableReader> open_names(FileSystem& files, const std::string& input,
                                        StringIds& ids) {
  const TextInput text = parse_text_input(input);
  if (text.path.empty()) return open_id_array(open_array_source(files, input), {}, ids);
  return open_id_table(open_byte_source(files, text.path), input, text.columns, HeaderRule::kNames,
                       ids);
}

std::vector<std::uint32_t> by_name(FileSystem& files, const Dataset& dataset,
                                   const std::string& input, const Control& control) {
  if (parse_text_input(input).path.empty() &&
      open_table(files, input)->kind() != ElementKind::kString) {
    throw DataError("numbers where the dataset's ids are strings", input,
                    "write the ids into a text file, or as an array of strings");
  }
  StringIds ids(std::numeric_limits<std::int64_t>::max());
  read_ids(*open_names(files, input, ids), control);
  ids.finish();
  const OriginalNames names(dataset);
  std::vector<std::uint32_t> vertices;
  std::vector<bool> is_known(static_cast<std::size_t>(ids.size()));
  std::string buffer;
  for (std::int64_t row = 0; row < dataset.vertices(); ++row) {
    if (row % kRowsAtOnce == 0) {
      control.step("finding vertices", static_cast<double>(row),
                   static_cast<double>(dataset.vertices()));
      names.release();
    }
    const std::optional<VertexId> found = ids.find(names.of(row, buffer));
    if (!found) continue;
    is_known[static_cast<std::size_t>(*found)] = true;
    vertices.push_back(static_cast<std::uint32_t>(row));
  }
  std::vector<std::string> unknown;
  for (std::int64_t id = 0; id < ids.size(); ++id) {
    if (!is_known[static_cast<std::size_t>(id)]) unknown.push_back(quoted_id(ids[id]));
  }
  if (!unknown.empty()) refuse_unknown(unknown, dataset, input);
  return vertices;
}

}  // namespace

std::vector<std::uint32_t> listed_vertices(FileSystem& files, const Dataset& dataset,
                                           const std::string& input, const Control& control) {
  const bool strings = dataset.manifest().remapped == IdKind::kStrings;
  return strings ? by_name(files, dataset, input, control)
                 : by_number(files, dataset, input, control);
}

}  // namespace ooc
