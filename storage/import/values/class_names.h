// Labels that may be names of classes: in text, and in arrays of strings.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "storage/base/control.h"
#include "storage/import/decode/text_layout.h"
#include "storage/import/formats/table_reader.h"
#include "storage/import/ids/string_ids.h"

namespace ooc {

// Words that say that there is no label.
std::vector<std::string> unlabelled_words();

struct LabelTable {
  std::unique_ptr<TableReader> table;
  std::unique_ptr<StringIds> ids;  // of names in the table, which gives their places, -1 unlabelled
  // By class; empty where nobody names them. In ascending order where the table holds them.
  std::vector<std::string> names;
  std::string warning;  // of what was probably not meant; empty: nothing
};

// Opens labels. In one column of text that isn't all numbers they are names, blanks and all, and in
// an array of strings; `columns.missing` says that there is none. Of numbers the text `names` has
// the names, one in a line, if it is not empty. Throws DataError for more than 65,536 names,
// UsageError for names from both.
LabelTable open_labels(FileSystem& files, const std::string& input, const TextColumns& columns,
                       const std::string& names, const Control& control);

}  // namespace ooc
