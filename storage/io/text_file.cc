#include "storage/io/text_file.h"

#include <span>
#include <utility>

#include "storage/base/errors.h"

namespace ooc {
namespace {

constexpr std::size_t kBufferBytes = 256 << 10;

}  // namespace

TextFile::TextFile(FileSystem& files, std::string path)
    : files_(files), path_(std::move(path)), file_(files.create(path_ + ".tmp")) {}

TextFile::~TextFile() {
  if (finished_) return;
  try {
    files_.remove_all(path_ + ".tmp");
  } catch (const Error&) {  // what failed first is on its way to the user already
  }
}

void TextFile::add(std::string_view text) {
  buffer_ += text;
  if (buffer_.size() >= kBufferBytes) flush();
}

void TextFile::add_field(std::string_view text) {
  if (text.find_first_of(",;\" \t#") == std::string_view::npos) return add(text);
  buffer_ += '"';
  for (const char c : text) buffer_.append(c == '"' ? 2 : 1, c);
  add("\"");
}

void TextFile::flush() {
  file_->write_at(written_, std::as_bytes(std::span(buffer_)));
  written_ += buffer_.size();
  buffer_.clear();
}

void TextFile::finish() {
  flush();
  file_->sync();
  file_->close();
  files_.rename(path_ + ".tmp", path_);
  files_.sync_directory(parent_path(path_));
  finished_ = true;
}

}  // namespace ooc
