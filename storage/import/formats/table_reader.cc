#include "storage/import/formats/table_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "storage/base/errors.h"
#include "storage/import/decode/text_layout.h"
#include "storage/import/formats/csv.h"
#include "storage/import/formats/hdf5_table.h"
#include "storage/import/formats/mtx.h"
#include "storage/import/formats/npy.h"
#include "storage/import/formats/npz.h"
#include "storage/import/formats/raw.h"

namespace ooc {
namespace {

constexpr std::array<std::string_view, 13> kExtensions = {
    ".npy",    ".npz", ".csv", ".tsv", ".txt",    ".csv.gz", ".tsv.gz",
    ".txt.gz", ".mtx", ".h5",  ".bin", ".mtx.gz", ".hdf5"};

bool ends_with_any(std::string_view name, std::span<const std::string_view> ends) {
  return std::any_of(ends.begin(), ends.end(),
                     [&](std::string_view end) { return name.ends_with(end); });
}

// A path and what stands after the colon after its end: "x.npz:y" is "x.npz" and "y".
struct InputName {
  std::string path;
  std::string member;
};

// Splits `input` where its file has one of these ends; empty path where not.
InputName split_member(const std::string& input, std::initializer_list<const char*> ends) {
  for (const std::string end : ends) {
    if (input.ends_with(end)) return {input, ""};
    const std::size_t at = input.rfind(end + ":");
    if (at == std::string::npos) continue;
    return {input.substr(0, at + end.size()), input.substr(at + end.size() + 1)};
  }
  return {};
}

bool has(const std::vector<std::string>& members, const std::string& name) {
  return std::find(members.begin(), members.end(), name) != members.end();
}

// How the names of a sparse matrix's arrays begin, where `member` is one: "" or "adj_".
std::optional<std::string> sparse_prefix(const std::vector<std::string>& members,
                                         const std::string& member) {
  if (member.empty() && has(members, "format") && has(members, "shape")) return "";
  std::string prefix = member + "_";
  if (has(members, prefix + "indptr") && has(members, prefix + "shape")) return prefix;
  return std::nullopt;
}

std::unique_ptr<ByteSource> open_npz_array(FileSystem& files, const InputName& input,
                                           const std::vector<std::string>& members) {
  const auto& [path, member] = input;
  if (!member.empty()) return open_npz_member(files, path, member);
  if (members.size() == 1) return open_npz_member(files, path, members[0]);
  throw DataError(
      fmt::format("the archive holds {} arrays ({})", members.size(), fmt::join(members, ", ")),
      path, "name one, FILE.npz:MEMBER");
}

std::unique_ptr<TableReader> open_npz_table(FileSystem& files, const InputName& input) {
  const std::vector<std::string> members = npz_members(files, input.path);
  if (const auto prefix = sparse_prefix(members, input.member)) {
    return open_sparse_table(files, input.path, *prefix);
  }
  return open_npy_table(open_npz_array(files, input, members));
}

}  // namespace

std::span<const std::string_view> table_extensions() { return kExtensions; }

bool is_text_name(std::string_view name) { return !parse_text_input(name).path.empty(); }

bool is_known_kind(const std::string& input) {
  std::string_view path;
  return ends_with_any(input, kExtensions) || raw_suffix(input, path) || is_text_name(input) ||
         !split_member(input, {".npz", ".h5", ".hdf5", ".mtx", ".mtx.gz"}).path.empty();
}

std::string first_look(TableReader& table) {
  if (is_text_name(table.name()) && table.rows() > 0) {
    const std::string text = table.row_text(0);
    return text.empty() ? table.name() : fmt::format("{}: {}", table.where(0), text);
  }
  return fmt::format("{}, shape ({}, {})", table.name(), table.rows(), table.cols());
}

void refuse_columns(TableReader& table, std::string_view needed, std::string_view remedy) {
  const std::string text = parse_text_input(table.name()).path;
  throw DataError(fmt::format("{} one column, not {}", needed, table.cols()), first_look(table),
                  text.empty() || table.cols() == 0
                      ? std::string(remedy)
                      : fmt::format("choose it, {}:COLUMN; otherwise {}", text, remedy));
}

std::unique_ptr<TableReader> open_table(FileSystem& files, const std::string& input,
                                        const TextColumns& columns) {
  if (const TextInput text = parse_text_input(input); !text.path.empty()) {
    TextColumns all = columns;
    all.chosen = text.columns.chosen;
    return open_text_table(open_byte_source(files, text.path), input, all);
  }
  OOC_CHECK(columns.all());
  if (const InputName npz = split_member(input, {".npz"}); !npz.path.empty()) {
    return open_npz_table(files, npz);
  }
  if (const InputName hdf5 = split_member(input, {".h5", ".hdf5"}); !hdf5.path.empty()) {
    return open_hdf5_table(files, hdf5.path, hdf5.member);
  }
  if (const InputName mtx = split_member(input, {".mtx", ".mtx.gz"}); !mtx.path.empty()) {
    return open_mtx_table(open_byte_source(files, mtx.path), mtx.member);
  }
  std::string_view path;
  if (const auto format = raw_suffix(input, path)) {
    return open_raw_table(files, std::string(path), *format);
  }
  if (input.ends_with(".npy")) return open_npy_table(open_byte_source(files, input));
  if (input.ends_with(".bin")) {
    throw DataError(
        "a headerless file does not say what it holds", input,
        fmt::format("say it: {}:float32x128, or --raw-dtype and --raw-columns", base_name(input)));
  }
  throw DataError("the kind of file is not known from its name", input,
                  fmt::format("give one that ends in {}: .txt if it is text; of a headerless array "
                              "say --raw-dtype and --raw-columns",
                              fmt::join(kExtensions, ", ")));
}

std::unique_ptr<ByteSource> open_array_source(FileSystem& files, const std::string& input) {
  if (input.ends_with(".npy")) return open_byte_source(files, input);
  const InputName npz = split_member(input, {".npz"});
  if (npz.path.empty()) return nullptr;
  return open_npz_array(files, npz, npz_members(files, npz.path));
}

std::unique_ptr<TableReader> open_edge_table(FileSystem& files, const std::string& input) {
  const auto [path, member] = split_member(input, {".npz"});
  if (path.empty()) return open_table(files, input);
  const std::vector<std::string> members = npz_members(files, path);
  if (const auto prefix = sparse_prefix(members, member)) {
    return open_sparse_edges(files, path, *prefix);
  }
  const std::size_t comma = member.find(',');
  if (comma == std::string::npos || has(members, member)) return open_table(files, input);
  return open_pairs(files, path, member.substr(0, comma), member.substr(comma + 1));
}

}  // namespace ooc
