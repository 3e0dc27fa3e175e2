// Tables of numbers as text: .csv, .tsv, .txt, also .gz.
//   - separators and quotes are those of text_fields.h;
//   - a first line in which no field is a number is a header and is left out;
//   - '#' starts a comment, where columns are chosen at the start of a line only; '%' does so
//   there;
//     blank lines are skipped, lines end in LF or CRLF;
//   - True and False are 1 and 0; nan and inf are floats.
// Every line must have as many fields as the first.
#pragma once

#include <memory>
#include <string>

#include "storage/import/decode/byte_source.h"
#include "storage/import/decode/text_layout.h"
#include "storage/import/formats/table_reader.h"

namespace ooc {

// The chosen columns; `name` is the table's for messages.
std::unique_ptr<TableReader> open_text_table(std::unique_ptr<ByteSource> source, std::string name,
                                             const TextColumns& columns);

}  // namespace ooc
