#include "storage/import/formats/inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "storage/base/closest.h"
#include "storage/base/errors.h"
#include "storage/import/formats/raw.h"
#include "storage/import/formats/table_reader.h"

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

// The files of arrays among `names` that play no part, but for those of usual names: others were
// named in their place.
std::vector<std::string> unused_arrays(const std::vector<std::string>& names, ImportInputs& inputs,
                                       const std::vector<std::string_view>& usual) {
  std::vector<std::string> unused;
  for (const std::string& name : names) {
    const Candidate candidate = split_name(name);
    if (!candidate.readable || is_word(name.substr(0, 6), "readme")) continue;
    const auto parts = inputs.all();
    const bool used = std::any_of(parts.begin(), parts.end(), [&](const std::string* part) {
      const std::string file = base_name(part->substr(0, part->rfind(':')));
      return file == name || base_name(*part) == name;
    });
    const bool replaced = std::find(usual.begin(), usual.end(), candidate.stem) != usual.end();
    if (!used && !replaced) unused.push_back(name);
  }
  return unused;
}

// Whether only --raw-dtype can say what the input holds.
bool is_headerless(FileSystem& files, const std::string& input) {
  std::string_view path;
  if (raw_suffix(input, path)) return false;
  if (input.ends_with(".npy")) return !has_npy_magic(files, input);
  return input.ends_with(".bin") || !is_known_kind(input);
}

}  // namespace

ImportInputs discover_inputs(FileSystem& files, const std::string& directory, ImportInputs named) {
  if (!files.is_directory(directory)) {
    throw DataError("there is no such directory", directory, "name one with edges.* in it");
  }
  const std::vector<std::string> names = files.list(directory);
  using Stems = std::vector<std::string_view>;
  Stems usual;
  const auto fill = [&](std::string& role, const Stems& stems) {
    usual.insert(usual.end(), stems.begin(), stems.end());
    if (role.empty()) role = find_role(directory, names, stems);
  };
  fill(named.edges, {"edges", "edge_index"});
  if (named.edges.empty()) {
    if (files.is_directory(join_path(directory, "raw"))) {
      throw DataError("there are no edges, but a directory raw/", directory,
                      fmt::format("if this is a dataset of OGB, give --ogb {}", directory));
    }
    throw DataError(
        "there are no edges", directory,
        "put edges.npy there, or another edges.* or edge_index.*, or give --edges FILE");
  }
  fill(named.features, {"features", "x", "feat", "node_feat"});
  fill(named.labels, {"labels", "y"});
  fill(named.train, {"train_idx", "train_mask"});
  fill(named.valid, {"valid_idx", "valid_mask", "val_idx", "val_mask"});
  fill(named.test, {"test_idx", "test_mask"});
  fill(named.edge_weights, {"edge_weights"});
  fill(named.edge_types, {"edge_types"});
  fill(named.edge_features, {"edge_features"});
  fill(named.ids, {"ids"});
  fill(named.class_names, {"class_names"});
  named.unused = unused_arrays(names, named, usual);
  return named;
}

void apply_raw_format(FileSystem& files, ImportInputs& inputs, const std::string& dtype,
                      std::int64_t columns) {
  const std::string suffix = fmt::format("{}x{}", dtype, columns);
  if (!parse_raw_format(dtype) || dtype.find('x') != std::string::npos ||
      !parse_raw_format(suffix)) {
    throw UsageError(fmt::format("--raw-dtype {} --raw-columns {} is no type", dtype, columns),
                     "command line", "give bool, int8 to int64, uint8 to uint64 or float16 to 64");
  }
  std::vector<std::string*> headerless;
  for (std::string* const input : inputs.all()) {
    if (!input->empty() && is_headerless(files, *input)) headerless.push_back(input);
  }
  if (headerless.empty()) {
    throw UsageError("--raw-dtype is given but no input is headerless", "command line",
                     "leave it out, or name the file it is meant for");
  }
  if (headerless.size() > 1) {
    throw UsageError(
        fmt::format("both {} and {} are headerless", *headerless[0], *headerless[1]),
        "command line",
        fmt::format("say what each holds beside its name, such as {}:{}", *headerless[0], suffix));
  }
  *headerless[0] += ":" + suffix;
}

}  // namespace ooc
