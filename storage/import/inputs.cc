#include "storage/import/inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "storage/errors.h"
#include "storage/import/table_reader.h"

namespace ooc {
namespace {

constexpr const char* kWanted = "name the one that is meant, such as --edges FILE";

// "edges.csv.gz" is "edges" with a known end; `readable` says whether the end is known.
struct Candidate {
  std::string name;
  std::string_view stem;
  bool readable = false;
};

Candidate split_name(const std::string& name) {
  Candidate candidate{name, {}, false};
  std::size_t end_length = 0;
  for (const std::string_view extension : table_extensions()) {
    if (name.ends_with(extension)) end_length = std::max(end_length, extension.size());
  }
  candidate.readable = end_length > 0;
  const std::size_t dot = name.find('.');
  candidate.stem = candidate.readable ? std::string_view(name).substr(0, name.size() - end_length)
                                      : std::string_view(name).substr(0, dot);
  return candidate;
}

// The file in `names` whose stem is one of `stems`; empty where there is none.
std::string find_role(const std::string& directory, const std::vector<std::string>& names,
                      const std::vector<std::string_view>& stems) {
  std::string found;
  bool found_readable = false;
  for (const std::string& name : names) {
    const Candidate candidate = split_name(name);
    if (std::find(stems.begin(), stems.end(), candidate.stem) == stems.end()) continue;
    if (!found.empty() && found_readable && candidate.readable) {
      throw DataError(fmt::format("both {} and {} could be meant", found, name), directory,
                      kWanted);
    }
    if (!found.empty() && found_readable) continue;
    found = name;
    found_readable = candidate.readable;
  }
  if (!found.empty() && !found_readable) {
    throw DataError("this kind of file is not supported", join_path(directory, found),
                    fmt::format("save it as one of {}", fmt::join(table_extensions(), ", ")));
  }
  return found.empty() ? found : join_path(directory, found);
}

}  // namespace

ImportInputs discover_inputs(FileSystem& files, const std::string& directory, ImportInputs named) {
  if (!files.is_directory(directory)) {
    throw DataError("there is no such directory", directory, "name one with edges.* in it");
  }
  const std::vector<std::string> names = files.list(directory);
  using Stems = std::vector<std::string_view>;
  const auto fill = [&](std::string& role, const Stems& stems) {
    if (role.empty()) role = find_role(directory, names, stems);
  };
  fill(named.edges, {"edges", "edge_index"});
  if (named.edges.empty()) {
    throw DataError(
        "there are no edges", directory,
        "put edges.npy there, or another edges.* or edge_index.*, or give --edges FILE");
  }
  fill(named.features, {"features", "x", "feat", "node_feat"});
  fill(named.labels, {"labels", "y"});
  fill(named.train, {"train_idx", "train_mask"});
  fill(named.valid, {"valid_idx", "valid_mask", "val_idx", "val_mask"});
  fill(named.test, {"test_idx", "test_mask"});
  for (const std::string& name : names) {
    const std::string_view stem = split_name(name).stem;
    if (stem == "edge_weights" || stem == "edge_types" || stem == "edge_features") {
      named.ignored.push_back(join_path(directory, name));
    }
  }
  return named;
}

}  // namespace ooc
