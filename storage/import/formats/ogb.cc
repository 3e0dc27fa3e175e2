#include "storage/import/formats/ogb.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "storage/base/errors.h"
#include "storage/import/formats/npz.h"
#include "storage/import/formats/table_reader.h"

namespace ooc {
namespace {

void set_if_empty(std::string& role, const std::string& input) {
  if (role.empty()) role = input;
}

// "raw/edge.csv.gz", or without .gz; empty where there is neither.
std::string find_text(FileSystem& files, const std::string& directory, const std::string& stem) {
  for (const char* const end : {".csv.gz", ".csv"}) {
    const std::string path = join_path(directory, stem + end);
    if (files.exists(path)) return path;
  }
  return {};
}

std::int64_t read_vertex_count(FileSystem& files, const std::string& input) {
  const auto table = open_table(files, input);
  std::array<std::int64_t, 2> counts = {};
  if (table->cols() == 1 && table->read(std::span(counts)) == 1 && counts[0] > 0) return counts[0];
  throw DataError("not the vertex count of one graph", input,
                  "only OGB's node property datasets, of one graph each, can be read");
}

std::optional<std::int64_t> find_in_archive(FileSystem& files, const std::string& raw,
                                            ImportInputs& inputs) {
  const std::string data = join_path(raw, "data.npz");
  const std::vector<std::string> members = npz_members(files, data);
  const auto member = [&](const char* name) {
    const bool there = std::find(members.begin(), members.end(), name) != members.end();
    return there ? fmt::format("{}:{}", data, name) : std::string();
  };
  set_if_empty(inputs.edges, member("edge_index"));
  set_if_empty(inputs.features, member("node_feat"));
  set_if_empty(inputs.edge_features, member("edge_feat"));
  const std::string labels = join_path(raw, "node-label.npz");
  if (files.exists(labels)) set_if_empty(inputs.labels, labels + ":node_label");
  const std::string count = member("num_nodes_list");
  if (count.empty()) return std::nullopt;
  return read_vertex_count(files, count);
}

std::optional<std::int64_t> find_in_text(FileSystem& files, const std::string& raw,
                                         ImportInputs& inputs) {
  set_if_empty(inputs.edges, find_text(files, raw, "edge"));
  set_if_empty(inputs.features, find_text(files, raw, "node-feat"));
  set_if_empty(inputs.labels, find_text(files, raw, "node-label"));
  set_if_empty(inputs.edge_features, find_text(files, raw, "edge-feat"));
  const std::string count = find_text(files, raw, "num-node-list");
  if (count.empty()) return std::nullopt;
  return read_vertex_count(files, count);
}

// The directory of the split that is meant; empty where there is none.
std::string find_split(FileSystem& files, const std::string& directory, const std::string& wanted) {
  const std::string splits = join_path(directory, "split");
  std::vector<std::string> names;
  if (files.is_directory(splits)) {
    for (const std::string& name : files.list(splits)) {
      if (files.is_directory(join_path(splits, name))) names.push_back(name);
    }
  }
  const bool there = std::find(names.begin(), names.end(), wanted) != names.end();
  if (!wanted.empty() && !there) {
    throw DataError(fmt::format("there is no split '{}'", wanted), splits,
                    fmt::format("there is: {}", fmt::join(names, ", ")));
  }
  if (wanted.empty() && names.size() > 1) {
    throw DataError("there are several splits", splits,
                    fmt::format("choose one, --split-name {}", fmt::join(names, " or ")));
  }
  if (names.empty()) return {};
  return join_path(splits, wanted.empty() ? names[0] : wanted);
}

}  // namespace

OgbInputs find_ogb_inputs(FileSystem& files, const std::string& directory,
                          const std::string& split_name, ImportInputs named) {
  const std::string raw = join_path(directory, "raw");
  if (!files.is_directory(raw)) {
    throw DataError("there is no directory raw/", directory,
                    "name the directory that holds OGB's raw/ and split/");
  }
  for (const char* const of_types :
       {"relations", "nodetype-has-label.csv.gz", "triplet-type-list.csv.gz"}) {
    if (!files.exists(join_path(raw, of_types))) continue;
    throw DataError("a heterogeneous dataset of OGB: vertices of several types", raw,
                    "import one type of vertices and edges, with --edges, --features and so on");
  }
  OgbInputs found{std::move(named), std::nullopt};
  found.vertices = files.exists(join_path(raw, "data.npz"))
                       ? find_in_archive(files, raw, found.inputs)
                       : find_in_text(files, raw, found.inputs);
  if (found.inputs.edges.empty()) {
    throw DataError("there is neither edge.csv.gz nor data.npz with edge_index", raw,
                    "download the dataset again");
  }
  const std::string split = find_split(files, directory, split_name);
  if (!split.empty()) {
    set_if_empty(found.inputs.train, find_text(files, split, "train"));
    set_if_empty(found.inputs.valid, find_text(files, split, "valid"));
    set_if_empty(found.inputs.test, find_text(files, split, "test"));
  }
  return found;
}

}  // namespace ooc
