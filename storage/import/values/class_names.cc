#include "storage/import/values/class_names.h"

#include <fmt/format.h>

#include "storage/base/errors.h"
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

// Collects the names in a column and leaves it at its start.
void collect_names(LabelTable& labels, const std::string& input, const Control& control) {
  std::vector<std::int64_t> block(kBlockRows);
  double read = 0;
  while (const std::int64_t count = labels.table->read(std::span(block))) {
    read += static_cast<double>(count);
    control.step("collecting names of classes", read, 0);
    if (!labels.ids->complete() || labels.ids->size() > kMostNames) refuse_many(input);
  }
  labels.ids->finish();
  labels.table->rewind();
  for (std::int64_t i = 0; i < labels.ids->size(); ++i) labels.names.emplace_back((*labels.ids)[i]);
}

std::vector<std::string> read_lines(FileSystem& files, const std::string& path) {
  LineReader lines(open_byte_source(files, path), LineReader::kBufferBytes,
                   LineReader::Comments::kNone);
  std::vector<std::string> names;
  std::string_view line;
  while (lines.next(line)) {
    if (std::ssize(names) == kMostNames) refuse_many(path);
    names.emplace_back(line);
  }
  return names;
}

}  // namespace

std::vector<std::string> missing_words() {
  return {"nan", "NaN", "NAN", "na", "NA", "n/a", "N/A", "null", "NULL"};
}

std::vector<std::string> unlabelled_words() {
  std::vector<std::string> words = missing_words();
  words.insert(words.end(), {"unknown", "Unknown", "UNKNOWN", "unlabelled", "unlabeled", "?"});
  return words;
}

LabelTable open_labels(FileSystem& files, const std::string& input, const TextColumns& columns,
                       const std::string& names, const Control& control) {
  LabelTable labels{open_table(files, input, columns), nullptr, {}};
  if (!names.empty()) labels.names = read_lines(files, names);
  const TextInput text = parse_text_input(input);
  if (text.path.empty() || labels.table->cols() > 1) return labels;
  TextColumns all = columns;
  all.chosen = text.columns.chosen;
  const auto source = [&] { return open_byte_source(files, text.path); };
  if (!find_string_id(source(), all, control)) return labels;
  if (!names.empty()) {
    throw UsageError(fmt::format("both {} and {} hold names of classes", input, names),
                     "command line", "give numbers as labels, or leave out --class-names");
  }
  labels.ids = std::make_unique<StringIds>(kNamesBytes, input);
  labels.table = open_id_table(source(), input, all, HeaderRule::kNames, *labels.ids);
  collect_names(labels, input, control);
  return labels;
}

}  // namespace ooc
