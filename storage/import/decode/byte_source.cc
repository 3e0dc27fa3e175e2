#include "storage/import/decode/byte_source.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "storage/base/errors.h"

namespace ooc {
namespace {

constexpr std::size_t kInflateBytes = 256 << 10;
constexpr int kGzipOnly = 15 + 16;  // zlib's windowBits: the largest window, gzip headers

class PlainSource final : public ByteSource {
 public:
  explicit PlainSource(std::shared_ptr<ReadableFile> file) : file_(std::move(file)) {}

  const std::string& name() const override { return file_->path(); }
  std::optional<std::uint64_t> size() const override { return file_->size(); }
  bool seekable() const override { return true; }

  std::size_t read(std::span<std::byte> out) override {
    std::size_t filled = 0;
    while (filled < out.size()) {
      const std::size_t got = file_->read_at(offset_, out.subspan(filled));
      if (got == 0) break;
      filled += got;
      offset_ += got;
    }
    return filled;
  }

  void seek(std::uint64_t offset) override { offset_ = offset; }

  std::unique_ptr<ByteSource> reopen() const override {
    return std::make_unique<PlainSource>(file_);
  }

 private:
  std::shared_ptr<ReadableFile> file_;
  std::uint64_t offset_ = 0;
};

// A .gz, which may be several gzip members one after another (as bgzip and `cat a.gz b.gz` write).
class GzipSource final : public ByteSource {
 public:
  explicit GzipSource(std::shared_ptr<ReadableFile> file) : file_(std::move(file)) {
    OOC_CHECK(inflateInit2(&stream_, kGzipOnly) == Z_OK);
  }
  ~GzipSource() override { inflateEnd(&stream_); }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;

  const std::string& name() const override { return file_->path(); }
  std::optional<std::uint64_t> size() const override { return std::nullopt; }
  bool seekable() const override { return false; }

  std::size_t read(std::span<std::byte> out) override {
    std::size_t filled = 0;
    while (filled < out.size() && refill()) {
      const std::size_t room = std::min<std::size_t>(out.size() - filled, 1 << 30);
      stream_.next_out = reinterpret_cast<Bytef*>(out.data() + filled);
      stream_.avail_out = static_cast<uInt>(room);
      const int status = inflate(&stream_, Z_NO_FLUSH);
      filled += room - stream_.avail_out;
      if (status == Z_STREAM_END) {
        inflateReset(&stream_);
        inside_member_ = false;
        after_member_ = true;
      } else if (status != Z_OK && status != Z_BUF_ERROR) {
        throw DataError(fmt::format("the gzip data is corrupt ({})",
                                    stream_.msg == nullptr ? "inflate failed" : stream_.msg),
                        fmt::format("{}, around byte {}", name(), file_offset_ - stream_.avail_in),
                        "write or download the file again");
      } else {
        inside_member_ = true;
      }
    }
    return filled;
  }

  void seek(std::uint64_t offset) override {
    inflateReset(&stream_);
    stream_.avail_in = 0;
    file_offset_ = 0;
    inside_member_ = false;
    after_member_ = false;
    skip_bytes(*this, offset);
  }

  std::unique_ptr<ByteSource> reopen() const override {
    return std::make_unique<GzipSource>(file_);
  }

 private:
  // False at the end of the file, or where only the zeros that pad it (tapes, block devices) are
  // left behind a member.
  bool refill() {
    while (fill_buffer()) {
      if (inside_member_ || !after_member_) return true;
      while (stream_.avail_in > 0 && *stream_.next_in == 0) {
        ++stream_.next_in;
        --stream_.avail_in;
      }
      if (stream_.avail_in > 0) return true;
    }
    return false;
  }

  bool fill_buffer() {
    if (stream_.avail_in > 0) return true;
    const std::size_t got = file_->read_at(file_offset_, buffer_);
    if (got == 0) {
      if (!inside_member_) return false;
      throw DataError("the gzip data ends early", fmt::format("{}, byte {}", name(), file_offset_),
                      "write or download the file again");
    }
    file_offset_ += got;
    stream_.next_in = reinterpret_cast<Bytef*>(buffer_.data());
    stream_.avail_in = static_cast<uInt>(got);
    return true;
  }

  std::shared_ptr<ReadableFile> file_;
  std::vector<std::byte> buffer_ = std::vector<std::byte>(kInflateBytes);
  z_stream stream_ = {};
  std::uint64_t file_offset_ = 0;
  bool inside_member_ = false;
  bool after_member_ = false;  // at least one is behind us
};

// Text never begins as gzip does: only the end of the name was lost.
bool is_compressed_text(ReadableFile& file) {
  constexpr std::array<std::string_view, 4> kEnds = {".csv", ".tsv", ".txt", ".mtx"};
  const bool text = std::any_of(kEnds.begin(), kEnds.end(),
                                [&](std::string_view end) { return file.path().ends_with(end); });
  std::array<std::byte, 2> start{};
  return text && file.read_at(0, start) == start.size() && start[0] == std::byte{0x1F} &&
         start[1] == std::byte{0x8B};
}

}  // namespace

std::unique_ptr<ByteSource> open_byte_source(FileSystem& files, const std::string& path) {
  std::shared_ptr<ReadableFile> file = files.open(path);
  if (path.ends_with(".gz") || is_compressed_text(*file))
    return std::make_unique<GzipSource>(std::move(file));
  return std::make_unique<PlainSource>(std::move(file));
}

void read_exact(ByteSource& source, std::span<std::byte> out) {
  const std::size_t got = source.read(out);
  if (got == out.size()) return;
  throw DataError("truncated: the data ends early",
                  fmt::format("{}, {} bytes short", source.name(), out.size() - got),
                  "write or download the file again");
}

void skip_bytes(ByteSource& source, std::uint64_t count) {
  std::vector<std::byte> scratch(std::min<std::uint64_t>(count, kInflateBytes));
  while (count > 0) {
    const std::size_t step = std::min<std::uint64_t>(count, scratch.size());
    read_exact(source, std::span(scratch).first(step));
    count -= step;
  }
}

}  // namespace ooc
