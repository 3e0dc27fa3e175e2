#include "storage/format/chunk_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "storage/base/aligned_vector.h"
#include "storage/base/errors.h"

namespace ooc {
namespace {

std::string_view remedy_of(ChunkFileKind kind) {
  return kind == ChunkFileKind::kBatches ? kSampleAgain : kImportAgain;
}

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
  header.edge_data = shape.edge_data;
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
    : files_(files), path_(std::move(path)), shape_(shape) {
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
  entry.items += items;
  if (data.size() == entry.bytes) {
    entry.checksum = checksum64(data);
  } else {
    std::optional<Checksum>& checksum = checksums_[chunk];
    if (!checksum) checksum.emplace();
    checksum->update(data);
    if (written_[chunk] + data.size() == entry.bytes) {
      entry.checksum = checksum->digest();
      checksum.reset();
    }
  }
  written_[chunk] += data.size();
}

void ChunkFileWriter::write_next(std::span<const std::span<const std::byte>> parts,
                                 std::uint64_t items) {
  OOC_CHECK(written_.empty() && next_chunk_ < index_.size());
  ChunkIndexEntry& entry = index_[next_chunk_++];
  entry.items = items;
  AlignedVector<std::byte> payload;
  for (const auto& part : parts) entry.bytes += part.size();
  payload.reserve(entry.bytes);
  for (const auto& part : parts) payload.insert(payload.end(), part.begin(), part.end());
  entry.checksum = checksum64(payload);
  if (entry.bytes == 0) return;
  file_->write_at(end_, payload);
  entry.offset = end_;
  end_ = aligned(end_ + entry.bytes);
}

std::unique_ptr<ChunkFileWriter> ChunkFileWriter::fork(std::string path,
                                                       const Control& control) const {
  OOC_CHECK(written_.empty());
  auto copy = std::make_unique<ChunkFileWriter>(files_, std::move(path), shape_);
  copy->index_ = index_;
  copy->next_chunk_ = next_chunk_;
  copy->end_ = end_;
  const auto file = files_.open(path_ + ".tmp");
  AlignedVector<std::byte> payload;
  for (std::uint64_t chunk = 0; chunk < next_chunk_; ++chunk) {
    control.step("copying edges", static_cast<double>(chunk), static_cast<double>(next_chunk_));
    payload.resize(index_[chunk].bytes);
    read_exact(*file, index_[chunk].offset, payload);
    copy->file_->write_at(index_[chunk].offset, payload);
  }
  return copy;
}

ChunkFileInfo ChunkFileWriter::finish(std::optional<std::uint64_t> cols) {
  shape_.cols = cols.value_or(shape_.cols);
  const ChunkFileHeader header = make_header(shape_);
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
  footer.header_checksum = header.checksum;
  footer.file_bytes = end_ + index_bytes.size() + sizeof(footer);
  footer.checksum = checksum_before(footer);
  std::memcpy(footer.magic, kFooterMagic, sizeof(footer.magic));
  file_->write_at(0, bytes_of(header));
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
  throw DataError(what, fmt::format("{}, offset {}", path(), offset), remedy_of(shape_.kind));
}

ChunkFileHeader ChunkFileReader::read_header(ChunkFileKind kind) const {
  if (file_->size() < kChunkAlignment) corrupt("truncated chunk file", file_->size());
  ChunkFileHeader header;
  read_exact(*file_, 0, std::as_writable_bytes(std::span(&header, 1)));
  if (std::memcmp(header.magic, kHeaderMagic, sizeof(header.magic)) != 0) {
    corrupt("not a chunk file", 0);
  }
  if (header.version > kFormatVersion) {
    throw DataError(fmt::format("chunk file format version {} is newer than this ooc knows ({})",
                                header.version, kFormatVersion),
                    path(), "use a newer ooc");
  }
  if (header.checksum != checksum_before(header)) corrupt("chunk file header is corrupt", 0);
  if (header.kind != static_cast<std::uint32_t>(kind)) corrupt("wrong kind of chunk file", 12);
  return header;
}

ChunkFileFooter ChunkFileReader::read_footer() const {
  const std::uint64_t size = file_->size();
  ChunkFileFooter footer;
  if (size < kChunkAlignment + sizeof(footer)) corrupt("truncated chunk file", size);
  const std::uint64_t at = size - sizeof(footer);
  read_exact(*file_, at, std::as_writable_bytes(std::span(&footer, 1)));
  if (std::memcmp(footer.magic, kFooterMagic, sizeof(footer.magic)) != 0) {
    corrupt("chunk file without its footer (truncated or not finished)", at);
  }
  if (footer.checksum != checksum_before(footer)) corrupt("chunk file footer is corrupt", at);
  if (footer.file_bytes != size) corrupt("chunk file has the wrong length", size);
  if (footer.index_offset % kChunkAlignment != 0 || footer.index_offset > at ||
      footer.index_bytes != at - footer.index_offset) {
    corrupt("chunk file index lies in the wrong place", at);
  }
  return footer;
}

void ChunkFileReader::read_index(const ChunkFileFooter& footer, std::uint64_t chunk_count) {
  index_.resize(chunk_count);
  const auto index_bytes = std::as_writable_bytes(std::span(index_));
  read_exact(*file_, footer.index_offset, index_bytes);
  if (checksum64(index_bytes) != footer.index_checksum) {
    corrupt("chunk file index is corrupt", footer.index_offset);
  }
  for (const ChunkIndexEntry& entry : index_) {
    if (entry.offset % kChunkAlignment != 0 || entry.offset > footer.index_offset ||
        entry.bytes > footer.index_offset - entry.offset ||
        (entry.bytes != 0 && entry.offset == 0)) {
      corrupt("a chunk lies outside its file", footer.index_offset);
    }
  }
}

ChunkFileReader::ChunkFileReader(FileSystem& files, const std::string& path, ChunkFileKind kind,
                                 VerifyPolicy verify)
    : path_(path), file_(files.open(path)), verify_(verify) {
  shape_.kind = kind;
  const ChunkFileHeader header = read_header(kind);
  const ChunkFileFooter footer = read_footer();
  // Compared by division: a count that overflows is refused too.
  if (footer.header_checksum != header.checksum ||
      footer.index_bytes % sizeof(ChunkIndexEntry) != 0 ||
      footer.index_bytes / sizeof(ChunkIndexEntry) != header.chunk_count) {
    corrupt("chunk file header and footer disagree", 0);
  }
  read_index(footer, header.chunk_count);
  shape_ = {kind,
            header.dtype,
            header.edge_data,
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

ChunkFileReader::ChunkFileReader(const ChunkFileShape& shape, std::vector<ChunkIndexEntry> index)
    : shape_(shape), index_(std::move(index)), verify_(VerifyPolicy::kNever) {}

std::span<const std::byte> ChunkFileReader::chunk(std::uint64_t chunk) const {
  const ChunkIndexEntry& entry = index_[chunk];
  const auto payload = file_->map().subspan(entry.offset, entry.bytes);
  verify(chunk, payload);
  return payload;
}

void ChunkFileReader::release(std::uint64_t chunk) const {
  file_->release(index_[chunk].offset, index_[chunk].bytes);
}

void ChunkFileReader::verify(std::uint64_t chunk, std::span<const std::byte> payload) const {
  if (!needs_verify(chunk)) return;
  if (checksum64(payload) != index_[chunk].checksum) {
    corrupt(fmt::format("chunk {} has the wrong checksum", chunk), index_[chunk].offset);
  }
  verified_[chunk].store(true, std::memory_order_release);
}

bool ChunkFileReader::needs_verify(std::uint64_t chunk) const {
  if (verify_ == VerifyPolicy::kFirst) return !verified_[chunk].load(std::memory_order_acquire);
  return verify_ == VerifyPolicy::kAlways;
}

void ChunkFileReader::check_zero(std::uint64_t begin, std::uint64_t end) const {
  const auto gap = file_->map().subspan(begin, end - begin);
  const auto found =
      std::find_if(gap.begin(), gap.end(), [](std::byte b) { return b != std::byte{0}; });
  if (found != gap.end()) {
    corrupt("a gap between chunks is not zero",
            begin + static_cast<std::uint64_t>(found - gap.begin()));
  }
}

void ChunkFileReader::verify_gaps() const {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> used;  // [begin, end) of each payload
  for (const ChunkIndexEntry& entry : index_) {
    if (entry.bytes != 0) used.emplace_back(entry.offset, entry.offset + entry.bytes);
  }
  std::sort(used.begin(), used.end());
  std::uint64_t end = sizeof(ChunkFileHeader);
  for (const auto& [chunk_begin, chunk_end] : used) {
    if (chunk_begin < end) corrupt("two chunks overlap", chunk_begin);
    check_zero(end, chunk_begin);
    end = chunk_end;
  }
  check_zero(end, info_.bytes - sizeof(ChunkFileFooter) - index_.size() * sizeof(ChunkIndexEntry));
}

}  // namespace ooc
