// Ids that are strings, in text: .csv, .tsv, .txt, also .gz.
//   - the separator is what the first line shows outside quotes: semicolon, comma, tab, or else
//     runs of blanks; blanks around a field are no part of it;
//   - a field may stand in double quotes: then it may hold the separator, and "" is one quote. It
//     ends on its line;
//   - a line that starts with '#' and a blank is a comment; any other '#' is part of an id;
//   - a first line of nothing but usual names, such as source,target or id, is a header;
//   - ids are UTF-8 without control characters, 1 to 65,535 bytes, and are taken as they are: 7 and
//     07 are two.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "storage/base/control.h"
#include "storage/import/formats/byte_source.h"
#include "storage/import/formats/table_reader.h"
#include "storage/import/ids/string_ids.h"

namespace ooc {

struct StringIdFound {
  std::string field;
  std::int64_t line = 0;
  bool after_integers = false;  // lines before held integers
};

// The first field that is no 64-bit integer, where there is one after the header: then all ids of
// the file are strings. Reads the text up to there.
std::optional<StringIdFound> find_string_id(std::unique_ptr<ByteSource> source,
                                            const Control& control);

// The text as a table of integers. While `ids` are not finished, they are added to it, and the
// integers are 0; then these are the dense ids, and one that is not there is an error.
std::unique_ptr<TableReader> open_id_table(std::unique_ptr<ByteSource> source, StringIds& ids);

// "'alice'", shortened where it is long: for messages.
std::string quoted_id(std::string_view id);

}  // namespace ooc
