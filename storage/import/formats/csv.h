// Tables of numbers as text: .csv, .tsv, .txt, also .gz.
//   - the separator is what the first line shows: semicolon, comma, tab, or else runs of blanks;
//   - a first line in which no field is a number is a header and is left out;
//   - '#' starts a comment, blank lines are skipped, lines end in LF or CRLF;
//   - a field may stand in double quotes, "0";
//   - True and False are 1 and 0; nan and inf are floats.
// Every line must have as many fields as the first.
#pragma once

#include <memory>

#include "storage/import/formats/byte_source.h"
#include "storage/import/formats/table_reader.h"

namespace ooc {

std::unique_ptr<TableReader> open_text_table(std::unique_ptr<ByteSource> source);

}  // namespace ooc
