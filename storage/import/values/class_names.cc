#include "storage/import/values/class_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "storage/base/errors.h"
#include "storage/base/utf8.h"
#include "storage/import/decode/number_text.h"
#include "storage/import/decode/text_fields.h"
#include "storage/import/ids/id_array.h"
#include "storage/import/ids/id_table.h"

namespace ooc {
namespace {

constexpr std::int64_t kMostNames = 65536;
constexpr std::int64_t kNamesBytes = 32 << 20;
constexpr std::size_t kBlockRows = 64 << 10;

[[noreturn]] void refuse_many(const std::string& input) {
  throw DataError(fmt::format("more than {} names of classes", kMostNames), input,
                  "is this the column of labels?");
}

// Reads the names of a column and leaves it at its start.
void read_names(LabelTable& labels, const std::string& input, const Control& control) {
  std::vector<std::int64_t> block(kBlockRows);
  double read = 0;
  while (const std::int64_t count = labels.table->read(std::span(block))) {
    read += static_cast<double>(count);
    control.step("collecting names of classes", read, 0);
    if (!labels.ids->complete() || labels.ids->size() > kMostNames) refuse_many(input);
  }
  labels.ids->finish();
  labels.table->rewind();
}

void open_name_array(FileSystem& files, const std::string& input, const TextColumns& columns,
                     LabelTable& labels, const Control& control) {
  labels.ids = std::make_unique<StringIds>(kNamesBytes, input);
  labels.table = open_id_array(open_array_source(files, input), columns, *labels.ids);
  read_names(labels, input, control);
}

// Opens a column of names. What looks like a header is one only if no other line says the same.
void open_names(FileSystem& files, const std::string& input, const TextColumns& columns,
                LabelTable& labels, const Control& control) {
  const std::string path = parse_text_input(input).path;
  LineReader lines(open_byte_source(files, path), LineReader::kBufferBytes,
                   LineReader::Comments::kWholeLines);
  const TextLayout layout = read_text_layout(lines, columns, HeaderRule::kNames);
  for (const HeaderRule rule : {HeaderRule::kNames, HeaderRule::kNone}) {
    labels.ids = std::make_unique<StringIds>(kNamesBytes, input);
    labels.table = open_id_table(open_byte_source(files, path), input, columns, rule, *labels.ids);
    read_names(labels, input, control);
    if (!layout.is_usual_header || !labels.ids->find(layout.first_name)) break;
  }
}

// Whether lines are names of one word or more, between which nothing but blanks would separate.
bool holds_phrases(FileSystem& files, const std::string& path) {
  LineReader lines(open_byte_source(files, path), LineReader::kBufferBytes,
                   LineReader::Comments::kWholeLines);
  TextFields fields;
  std::string_view line;
  bool any = false;
  while (lines.next(line)) {
    float number = 0;
    if (find_separator(line) != kBlankRuns ||
        fields.split(line, kBlankRuns) != TextFields::Status::kOk ||
        parse_field(fields[0], number) == Parse::kOk) {
      return false;
    }
    any = any || fields.size() > 1;
  }
  return any;
}

// The names that are in one column of `input`. Returns what was probably not meant, or nothing.
std::string find_names(FileSystem& files, const std::string& input, const TextColumns& columns,
                       LabelTable& labels, const Control& control) {
  if (labels.table->kind() == ElementKind::kString && labels.table->cols() == 1) {
    open_name_array(files, input, columns, labels, control);
    return {};
  }
  const TextInput text = parse_text_input(input);
  if (text.path.empty()) return {};
  TextColumns all = columns;
  all.chosen = text.columns.chosen;
  all.one_field = all.all() && holds_phrases(files, text.path);
  if (labels.table->cols() != 1 && !all.one_field) return {};
  const auto word =
      find_string_id(open_byte_source(files, text.path), all, NumberKind::kAny, control);
  if (!word) return {};
  open_names(files, input, all, labels, control);
  if (word->after_integers) {
    return fmt::format(
        "{} in line {} of {} is no number, so all labels are taken as names of "
        "classes: if it says that there is none, give it to --unlabelled",
        quoted_id(word->field), word->line, input);
  }
  if (labels.ids->uses_of_first() > 1) return {};
  return fmt::format("the first label in {} is in no other row: if it is a header, take it out",
                     input);
}

std::vector<std::string> read_lines(FileSystem& files, const std::string& path) {
  if (!is_text_path(path)) {
    throw DataError("names of classes are text", path, "write a .txt with a name in a line");
  }
  LineReader lines(open_byte_source(files, path), LineReader::kBufferBytes,
                   LineReader::Comments::kNone);
  std::vector<std::string> names;
  std::string_view line;
  while (lines.next(line)) {
    if (std::ssize(names) == kMostNames) refuse_many(path);
    const std::string where = fmt::format("{}, line {}", path, lines.line_number());
    if (lines.blank_lines() > 0) throw DataError("an empty line", where, "name every class");
    if (!is_plain_utf8(line)) {
      throw DataError("a name that is no UTF-8, or has control characters", where, "correct it");
    }
    names.emplace_back(line);
  }
  if (names.empty()) throw DataError("there are no names of classes", path, "name every class");
  std::vector<std::string> sorted = names;
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end()) {
    throw DataError(fmt::format("two classes are called '{}'", *twice), path,
                    "give each a name of its own");
  }
  return names;
}

}  // namespace

std::vector<std::string> unlabelled_words() {
  std::vector<std::string> words = missing_words();
  words.insert(words.end(), {"unknown", "Unknown", "UNKNOWN", "unlabelled", "unlabeled", "?"});
  return words;
}

LabelTable open_labels(FileSystem& files, const std::string& input, const TextColumns& columns,
                       const std::string& names, const Control& control) {
  LabelTable labels{open_table(files, input, columns), nullptr, {}, {}};
  if (!names.empty()) labels.names = read_lines(files, names);
  labels.warning = find_names(files, input, columns, labels, control);
  if (!labels.ids) return labels;
  if (!names.empty()) {
    throw UsageError(fmt::format("both {} and {} hold names of classes", input, names),
                     "command line", "let one of them be numbers, or be left out");
  }
  for (std::int64_t i = 0; i < labels.ids->size(); ++i) labels.names.emplace_back((*labels.ids)[i]);
  return labels;
}

}  // namespace ooc
