// Ids that are strings, in text: .csv, .tsv, .txt, also .gz.
//   - separators and quotes are those of text_fields.h;
//   - a line that starts with '#' or '%' and a blank is a comment; any other of them is part of an
//     id;
//   - a first line without numbers is a header by HeaderRule (text_layout.h);
//   - ids are UTF-8 without control characters, 1 to 65,535 bytes, and are taken as they are: 7 and
//     07 are two.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "storage/base/control.h"
#include "storage/import/decode/byte_source.h"
#include "storage/import/decode/text_layout.h"
#include "storage/import/formats/table_reader.h"
#include "storage/import/ids/id_numbers.h"
#include "storage/import/ids/string_ids.h"

namespace ooc {

struct StringIdFound {
  std::string field;
  std::int64_t line = 0;
  bool after_integers = false;  // lines before held numbers
};

enum class NumberKind { kIntegers, kAny };

// The first field of the columns that are read that is no number, where there is one after the
// header: then all ids are strings. Reads the text up to there.
std::optional<StringIdFound> find_string_id(std::unique_ptr<ByteSource> source,
                                            const TextColumns& columns, NumberKind kind,
                                            const Control& control);

// The text as a table of integers. While `ids` are not finished, they are added to it, and the
// integers are 0; then these are the dense ids, and one that is not there is an error. -1 where the
// field says that there is none.
std::unique_ptr<TableReader> open_id_table(std::unique_ptr<ByteSource> source, std::string name,
                                           const TextColumns& columns, HeaderRule header,
                                           StringIds& ids);

}  // namespace ooc
