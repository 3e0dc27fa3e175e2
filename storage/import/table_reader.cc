#include "storage/import/table_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "storage/errors.h"
#include "storage/import/csv.h"
#include "storage/import/npy.h"
#include "storage/import/npz.h"

namespace ooc {
namespace {

constexpr std::array<std::string_view, 8> kExtensions = {".npy", ".npz",    ".csv",    ".tsv",
                                                         ".txt", ".csv.gz", ".tsv.gz", ".txt.gz"};

std::unique_ptr<TableReader> open_npz_table(FileSystem& files, const std::string& path) {
  const std::vector<std::string> members = npz_members(files, path);
  const auto has = [&](const char* name) {
    return std::find(members.begin(), members.end(), name) != members.end();
  };
  if (has("format") && has("shape") && has("data")) return open_sparse_table(files, path);
  if (members.size() == 1) return open_npy_table(open_npz_member(files, path, members[0]));
  throw DataError(
      fmt::format("the archive holds {} arrays ({})", members.size(), fmt::join(members, ", ")),
      path, "name one, FILE.npz:MEMBER");
}

}  // namespace

std::span<const std::string_view> table_extensions() { return kExtensions; }

bool is_text_name(std::string_view name) {
  return !name.ends_with(".npy") && !name.ends_with(".npz") &&
         name.find(".npz:") == std::string_view::npos;
}

std::unique_ptr<TableReader> open_table(FileSystem& files, const std::string& input) {
  const std::size_t member = input.rfind(".npz:");
  if (member != std::string::npos) {
    return open_npy_table(
        open_npz_member(files, input.substr(0, member + 4), input.substr(member + 5)));
  }
  if (input.ends_with(".npz")) return open_npz_table(files, input);
  if (input.ends_with(".npy")) return open_npy_table(open_byte_source(files, input));
  for (const std::string_view extension : kExtensions) {
    if (input.ends_with(extension)) return open_text_table(open_byte_source(files, input));
  }
  throw DataError("the kind of file is not known from its name", input,
                  fmt::format("give one that ends in {}", fmt::join(kExtensions, ", ")));
}

}  // namespace ooc
