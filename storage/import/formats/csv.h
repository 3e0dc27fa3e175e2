// Tables of numbers as text: .csv, .tsv, .txt, also .gz.
//   - separators and quotes are those of text_fields.h;
//   - a first line without numbers is a header and is left out (HeaderRule::kNoNumbers);
//   - '#' outside quotes starts a comment, and '%' at the start of a line. Where columns are chosen
//     or left out, both do so at the start of a line before a blank only;
//   - blank lines are skipped, lines end in LF or CRLF;
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
