#include "storage/chunk_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "storage/errors.h"

namespace ooc {
namespace {

constexpr std::string_view kImportAgain = "import the dataset again";

std::uint64_t aligned(std::uint64_t offset) {
  return (offset + kChunkAlignment - 1) / kChunkAlignment * kChunkAlignment;
}

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

// The checksum of a struct's fields before its member `checksum`.
template <class T>
std::uint64_t checksum_before(const T& value) {
  return checksum64(bytes_of(value).first(offsetof(T, checksum)));
}

ChunkFileHeader make_header(const ChunkFileShape& shape) {
  ChunkFileHeader header{};
  std::memcpy(header.magic, kHeaderMagic, sizeof(header.magic));
  header.version = kFormatVersion;
  header.kind = static_cast<std::uint32_t>(shape.kind);
  header.dtype = shape.dtype;
  header.rows = shape.rows;
  header.cols = shape.cols;
  header.block_rows = shape.block_rows;
  header.slice_width = shape.slice_width;
  header.blocks_per_chunk = shape.blocks_per_chunk;
  header.span_rows = shape.span_rows;
  header.chunk_count = shape.chunk_count;
  header.checksum = checksum_before(header);
  return header;
}

}  // namespace

ChunkFileWriter::ChunkFileWriter(FileSystem& files, std::string path, const ChunkFileShape& shape,
                                 std::span<const std::uint64_t> chunk_bytes)
    : files_(files), path_(std::move(path)), header_(make_header(shape)) {
  index_.resize(shape.chunk_count);
  if (!chunk_bytes.empty()) {
    OOC_CHECK(chunk_bytes.size() == shape.chunk_count);
    written_.resize(shape.chunk_count);
    checksums_.resize(shape.chunk_count);
    for (std::uint64_t i = 0; i < shape.chunk_count; ++i) {
      index_[i].offset = end_;
      index_[i].bytes = chunk_bytes[i];
      end_ = aligned(end_ + chunk_bytes[i]);
    }
  }
  file_ = files_.create(path_ + ".tmp");
}

ChunkFileWriter::~ChunkFileWriter() {
  if (finished_) return;
  try {
    file_.reset();
    files_.remove_all(path_ + ".tmp");
  } catch (const Error&) {  // what failed first is on its way to the user already
  }
}

void ChunkFileWriter::append(std::uint64_t chunk, std::span<const std::byte> data,
                             std::uint64_t items) {
  ChunkIndexEntry& entry = index_[chunk];
  OOC_CHECK(written_[chunk] + data.size() <= entry.bytes);
  file_->write_at(entry.offset + written_[chunk], data);
  checksums_[chunk].update(data);
  written_[chunk] += data.size();
  entry.items += items;
  if (written_[chunk] == entry.bytes) entry.checksum = checksums_[chunk].digest();
}

void ChunkFileWriter::write_next(std::span<const std::byte> payload, std::uint64_t items) {
  OOC_CHECK(written_.empty() && next_chunk_ < index_.size());
  ChunkIndexEntry& entry = index_[next_chunk_++];
  entry.items = items;
  entry.checksum = checksum64(payload);
  if (payload.empty()) return;
  entry.offset = end_;
  entry.bytes = payload.size();
  file_->write_at(entry.offset, payload);
  end_ = aligned(end_ + payload.size());
}

ChunkFileInfo ChunkFileWriter::finish() {
  if (written_.empty()) OOC_CHECK(next_chunk_ == index_.size());
  for (std::size_t i = 0; i < written_.size(); ++i) {
    OOC_CHECK(written_[i] == index_[i].bytes);
    if (written_[i] == 0) index_[i] = {0, 0, 0, checksum64({})};
  }
  const auto index_bytes = std::as_bytes(std::span(index_));
  ChunkFileFooter footer{};
  footer.index_offset = end_;
  footer.index_bytes = index_bytes.size();
  footer.index_checksum = checksum64(index_bytes);
  footer.header_checksum = header_.checksum;
  footer.file_bytes = end_ + index_bytes.size() + sizeof(footer);
  footer.checksum = checksum_before(footer);
  std::memcpy(footer.magic, kFooterMagic, sizeof(footer.magic));
  file_->write_at(0, bytes_of(header_));
  file_->write_at(end_, index_bytes);
  file_->write_at(end_ + index_bytes.size(), bytes_of(footer));
  file_->sync();
  file_->close();
  files_.rename(path_ + ".tmp", path_);
  files_.sync_directory(parent_path(path_));
  finished_ = true;
  return {footer.file_bytes, footer.index_checksum};
}

void ChunkFileReader::corrupt(std::string_view what, std::uint64_t offset) const {
  throw DataError(what, fmt::format("{}, offset {}", path(), offset), kImportAgain);
}

void ChunkFileReader::read_footer(ChunkFileFooter& footer) const {
  const std::uint64_t size = bytes_.size();
  if (size < kChunkAlignment + sizeof(footer)) corrupt("truncated chunk file", size);
  const std::uint64_t at = size - sizeof(footer);
  std::memcpy(&footer, bytes_.data() + at, sizeof(footer));
  if (std::memcmp(footer.magic, kFooterMagic, sizeof(footer.magic)) != 0) {
    corrupt("chunk file without its footer (truncated or not finished)", at);
  }
  if (footer.checksum != checksum_before(footer)) corrupt("chunk file footer is corrupt", at);
  if (footer.file_bytes != size) corrupt("chunk file has the wrong length", size);
  if (footer.index_offset % kChunkAlignment != 0 || footer.index_offset > at ||
      footer.index_bytes != at - footer.index_offset) {
    corrupt("chunk file index lies in the wrong place", at);
  }
}

ChunkFileReader::ChunkFileReader(FileSystem& files, const std::string& path, ChunkFileKind kind,
                                 VerifyPolicy verify)
    : file_(files.open(path)), bytes_(file_->map()), verify_(verify) {
  ChunkFileHeader header;
  if (bytes_.size() < kChunkAlignment) corrupt("truncated chunk file", bytes_.size());
  std::memcpy(&header, bytes_.data(), sizeof(header));
  if (std::memcmp(header.magic, kHeaderMagic, sizeof(header.magic)) != 0) {
    corrupt("not a chunk file", 0);
  }
  if (header.version > kFormatVersion) {
    throw DataError(fmt::format("chunk file format version {} is newer than this ooc knows ({})",
                                header.version, kFormatVersion),
                    path, "use a newer ooc");
  }
  if (header.checksum != checksum_before(header)) corrupt("chunk file header is corrupt", 0);
  if (header.kind != static_cast<std::uint32_t>(kind)) corrupt("wrong kind of chunk file", 12);
  ChunkFileFooter footer;
  read_footer(footer);
  if (footer.header_checksum != header.checksum ||
      footer.index_bytes % sizeof(ChunkIndexEntry) != 0 ||
      footer.index_bytes / sizeof(ChunkIndexEntry) != header.chunk_count) {
    corrupt("chunk file header and footer disagree", 0);
  }
  const auto index_bytes = bytes_.subspan(footer.index_offset, footer.index_bytes);
  if (checksum64(index_bytes) != footer.index_checksum) {
    corrupt("chunk file index is corrupt", footer.index_offset);
  }
  index_ = {reinterpret_cast<const ChunkIndexEntry*>(index_bytes.data()), header.chunk_count};
  for (const ChunkIndexEntry& entry : index_) {
    if (entry.offset % kChunkAlignment != 0 || entry.offset > footer.index_offset ||
        entry.bytes > footer.index_offset - entry.offset ||
        (entry.bytes != 0 && entry.offset == 0)) {
      corrupt("a chunk lies outside its file", footer.index_offset);
    }
  }
  shape_ = {kind,
            header.dtype,
            header.rows,
            header.cols,
            header.block_rows,
            header.slice_width,
            header.blocks_per_chunk,
            header.span_rows,
            header.chunk_count};
  info_ = {footer.file_bytes, footer.index_checksum};
  verified_ = std::vector<std::atomic<bool>>(header.chunk_count);
}

std::span<const std::byte> ChunkFileReader::chunk(std::uint64_t chunk) const {
  const ChunkIndexEntry& entry = index_[chunk];
  const auto payload = bytes_.subspan(entry.offset, entry.bytes);
  if (verify_ == VerifyPolicy::kNever) return payload;
  std::atomic<bool>& seen = verified_[chunk];
  if (verify_ == VerifyPolicy::kFirst && seen.load(std::memory_order_acquire)) return payload;
  if (checksum64(payload) != entry.checksum) {
    corrupt(fmt::format("chunk {} has the wrong checksum", chunk), entry.offset);
  }
  seen.store(true, std::memory_order_release);
  return payload;
}

bool ChunkFileReader::verified(std::uint64_t chunk) const {
  return verified_[chunk].load(std::memory_order_acquire);
}

void ChunkFileReader::check_zero(std::uint64_t begin, std::uint64_t end) const {
  for (std::uint64_t at = begin; at < end; ++at) {
    if (bytes_[at] != std::byte{0}) corrupt("a gap between chunks is not zero", at);
  }
}

void ChunkFileReader::verify_all(const Control& control) const {
  const std::string phase = "checking " + base_name(path());
  std::vector<std::pair<std::uint64_t, std::uint64_t>> used;  // [begin, end) of each payload
  for (std::uint64_t i = 0; i < index_.size(); ++i) {
    control.step(phase, static_cast<double>(i), static_cast<double>(index_.size()));
    chunk(i);
    if (index_[i].bytes != 0)
      used.emplace_back(index_[i].offset, index_[i].offset + index_[i].bytes);
  }
  std::sort(used.begin(), used.end());
  std::uint64_t end = sizeof(ChunkFileHeader);
  for (const auto& [chunk_begin, chunk_end] : used) {
    if (chunk_begin < end) corrupt("two chunks overlap", chunk_begin);
    check_zero(end, chunk_begin);
    end = chunk_end;
  }
  const auto index_offset =
      static_cast<std::uint64_t>(reinterpret_cast<const std::byte*>(index_.data()) - bytes_.data());
  check_zero(end, index_offset);
}

}  // namespace ooc
