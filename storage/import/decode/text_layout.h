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
  bool whole_lines = false;  // a line is one field, and none is a comment
  // Fields that say that there is no value; an empty one says so, too, if there are any.
  std::vector<std::string> missing;

  bool all() const { return chosen.empty() && left_out.empty(); }
  bool is_missing(std::string_view field) const;
};

// "nodes.csv:3-5" is the text file "nodes.csv" and its columns "3-5". An empty path where `input`
// is no text.
struct TextInput {
  std::string path;
  TextColumns columns;
};
TextInput parse_text_input(std::string_view input);

// The kinds of text files by their ends: ".csv", ".csv.gz" and so on.
bool is_text_path(std::string_view path);

// What a first line without any number is.
enum class HeaderRule {
  kNoNumbers,  // a header: fields must be numbers
  // A header if it holds usual names, such as source,target or node_id, if a column is chosen by
  // its name, or if numbers follow in a column that is not read.
  kNames,
};

struct TextLayout {
  char separator = ',';
  bool has_header = false;
  std::int64_t file_cols = 0;  // 0 where there are no rows
  // For each column of the file its place among those that are read, -1 where it is not.
  std::vector<std::int64_t> targets;
  std::int64_t cols = 0;  // read
};

// Reads the first lines. Throws DataError where the table lacks a column.
TextLayout read_text_layout(LineReader& lines, const TextColumns& columns, HeaderRule rule);

}  // namespace ooc
