#include "storage/import/decode/line_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "storage/base/errors.h"

namespace ooc {
namespace {

constexpr std::size_t kMaxLineBytes = 64 << 20;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kBlanks = " \t\r\v\f";

std::string_view trim(std::string_view text) {
  if (!text.empty() && text.front() > ' ' && text.back() > ' ') return text;
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

}  // namespace

LineReader::LineReader(std::unique_ptr<ByteSource> source, std::size_t buffer_bytes,
                       Comments comments)
    : source_(std::move(source)),
      comments_(comments),
      buffer_(std::min<std::uint64_t>(buffer_bytes, source_->size().value_or(buffer_bytes) + 1)) {}

void LineReader::seek(std::uint64_t offset, std::int64_t line_number) {
  source_->seek(offset);
  source_offset_ = offset;
  begin_ = end_ = 0;
  hash_known_ = false;
  line_number_ = line_number;
}

bool LineReader::next(std::string_view& line) {
  blank_lines_ = 0;
  while (next_raw(line)) {
    ++line_number_;
    if (line_number_ == 1) check_encoding(line);
    if (comments_ == Comments::kAnywhere) line = without_comment(line);
    line = trim(line);
    if (line.empty()) {
      ++blank_lines_;
    } else if (!is_comment(line)) {
      return true;
    }
  }
  return false;
}

bool LineReader::is_comment(std::string_view line) const {
  if (comments_ != Comments::kWholeLines) return comments_ != Comments::kNone && line[0] == '%';
  return (line[0] == '#' || line[0] == '%') &&
         (line.size() == 1 || line[1] == ' ' || line[1] == '\t');
}

// Of the first line; takes a mark that says UTF-8 away.
void LineReader::check_encoding(std::string_view& line) const {
  if (line.starts_with("\xFF\xFE") || line.starts_with("\xFE\xFF")) {
    throw DataError("the text is UTF-16", source_->name(), "save it as UTF-8");
  }
  if (line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
}

// One search serves all lines up to the next '#': most files have none.
std::string_view LineReader::without_comment(std::string_view line) {
  const auto begin = static_cast<std::size_t>(line.data() - buffer_.data());
  if (!hash_known_ || hash_ < begin) {
    const void* const found = std::memchr(buffer_.data() + begin, '#', end_ - begin);
    hash_ = found == nullptr
                ? end_
                : static_cast<std::size_t>(static_cast<const char*>(found) - buffer_.data());
    hash_known_ = true;
  }
  const std::size_t length = std::min(line.size(), hash_ - begin);
  if (length == line.size() || line.substr(0, length).find('"') == std::string_view::npos) {
    return line.substr(0, length);
  }
  bool quoted = false;  // a quote twice within quotes changes it twice
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line[at] == '"') quoted = !quoted;
    if (line[at] == '#' && !quoted) return line.substr(0, at);
  }
  return line;
}

bool LineReader::next_raw(std::string_view& line) {
  std::size_t searched = begin_;
  for (;;) {
    const char* const start = buffer_.data() + begin_;
    const void* const found = std::memchr(buffer_.data() + searched, '\n', end_ - searched);
    if (found != nullptr) {
      const auto length = static_cast<std::size_t>(static_cast<const char*>(found) - start);
      line = {start, length};
      begin_ += length + 1;
      return true;
    }
    const std::size_t pending = end_ - begin_;
    if (!refill()) {
      if (pending == 0) return false;
      line = {buffer_.data() + begin_, pending};  // the last line may lack its end
      begin_ = end_;
      return true;
    }
    searched = begin_ + pending;
  }
}

// Moves what is pending to the front and reads more after it. False at the end.
bool LineReader::refill() {
  const std::size_t pending = end_ - begin_;
  if (pending >= kMaxLineBytes) {
    throw DataError("a line is longer than 64 MiB",
                    fmt::format("{}, line {}", source_->name(), line_number_ + 1),
                    "is this a text file of numbers? Large tables load better as .npy");
  }
  std::memmove(buffer_.data(), buffer_.data() + begin_, pending);
  begin_ = 0;
  end_ = pending;
  hash_known_ = false;
  if (pending * 2 > buffer_.size()) buffer_.resize(buffer_.size() * 2);
  const std::size_t got =
      source_->read(std::as_writable_bytes(std::span(buffer_).subspan(pending)));
  end_ += got;
  source_offset_ += got;
  return got > 0;
}

std::string shortened(std::string_view text) {
  constexpr std::size_t kMostShown = 60;
  if (text.size() <= kMostShown) return std::string(text);
  std::size_t end = kMostShown;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return fmt::format("{}…", text.substr(0, end));
}

}  // namespace ooc
