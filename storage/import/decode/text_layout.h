// How a text table is laid out, and which of its columns are read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "storage/import/decode/line_reader.h"

namespace ooc {

// Columns by their names in the header, or by their numbers from 1: "account,3-5". Both empty: all.
struct TextColumns {
  std::string chosen;
  std::string left_out;      // where none are chosen
  bool whole_lines = false;  // a line is one field, and none is a header or comment
  bool one_field = false;    // a line is one field
  // Fields that say that there is no value; an empty one says so, too, if there are any.
  std::vector<std::string> missing;

  bool all() const { return chosen.empty() && left_out.empty(); }
  bool is_missing(std::string_view field) const;
};

// Words that say in any text that there is no value.
std::vector<std::string> missing_words();

// "nodes.csv:3-5" is the text file "nodes.csv" and its columns "3-5". An empty path where `input`
// is no text.
struct TextInput {
  std::string path;
  TextColumns columns;
};
TextInput parse_text_input(std::string_view input);

// The kinds of text files by their ends: ".csv", ".csv.gz" and so on.
bool is_text_path(std::string_view path);

// When a first line is a header: if a column is chosen by its name, or the one that is left out is
// called as ids are, and else
enum class HeaderRule {
  kNoNumbers,  // if it has no number, where numbers are read
  // if those of its fields that are read are usual names, such as source,target or node_id, or if
  // it has no number, but a column that is not read has. Not in whole lines.
  kNames,
  kNone,  // never else
};

inline constexpr std::string_view kBlankRemedy =
    "write NaN where there is none, or take the line out";

struct TextLayout {
  char separator = ',';
  bool has_header = false;
  std::string first_name;        // of the first column that is read, where there is a header
  bool is_usual_header = false;  // only the names say that it is one
  std::int64_t file_cols = 0;    // 0 where there are no rows
  // For each column of the file its place among those that are read, -1 where it is not.
  std::vector<std::int64_t> targets;
  std::int64_t cols = 0;  // read
};

// Whether a header calls a column of ids so: "id", "node", "txId".
bool is_id_name(std::string_view name);

// Reads the first lines. Throws DataError where the table lacks a column.
TextLayout read_text_layout(LineReader& lines, const TextColumns& columns, HeaderRule rule);

}  // namespace ooc
