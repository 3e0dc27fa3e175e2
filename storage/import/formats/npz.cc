#include "storage/import/formats/npz.h"

#include <fmt/format.h>
#include <zip.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "storage/base/errors.h"

namespace ooc {
namespace {

constexpr std::string_view kMemberEnd = ".npy";
constexpr std::uint64_t kMostPacking = 1100;  // deflate makes at most 1032 bytes of one

// A zip archive opened over a ReadableFile. An exception from the file cannot pass through libzip:
// it is kept and thrown again by whoever called.
class ZipArchive {
 public:
  explicit ZipArchive(std::shared_ptr<ReadableFile> file) : file_(std::move(file)) {
    zip_error_t error;
    zip_error_init(&error);
    zip_source_t* source = zip_source_function_create(&ZipArchive::serve, this, &error);
    if (source != nullptr) archive_ = zip_open_from_source(source, ZIP_RDONLY, &error);
    if (archive_ == nullptr) {
      const std::string reason = zip_error_strerror(&error);
      if (source != nullptr) zip_source_free(source);
      zip_error_fini(&error);
      rethrow();
      throw DataError(fmt::format("not a readable .npz file ({})", reason), file_->path(),
                      "save it again with numpy.savez or scipy.sparse.save_npz");
    }
    zip_error_fini(&error);
  }
  ~ZipArchive() {
    if (archive_ != nullptr) zip_discard(archive_);
    zip_error_fini(&error_);
  }
  ZipArchive(const ZipArchive&) = delete;
  ZipArchive& operator=(const ZipArchive&) = delete;

  zip_t* get() const { return archive_; }
  const std::shared_ptr<ReadableFile>& file() const { return file_; }

  void rethrow() {
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

 private:
  static zip_int64_t serve(void* self, void* data, zip_uint64_t length, zip_source_cmd_t command) {
    return static_cast<ZipArchive*>(self)->handle(data, length, command);
  }

  zip_int64_t handle(void* data, zip_uint64_t length, zip_source_cmd_t command) {
    switch (command) {
      case ZIP_SOURCE_OPEN:
        offset_ = 0;
        return 0;
      case ZIP_SOURCE_READ:
        return read({static_cast<std::byte*>(data), length});
      case ZIP_SOURCE_SEEK: {
        const zip_int64_t target =
            zip_source_seek_compute_offset(offset_, file_->size(), data, length, &error_);
        if (target < 0) return -1;
        offset_ = static_cast<std::uint64_t>(target);
        return 0;
      }
      case ZIP_SOURCE_TELL:
        return static_cast<zip_int64_t>(offset_);
      case ZIP_SOURCE_STAT: {
        auto* const stat = static_cast<zip_stat_t*>(data);
        zip_stat_init(stat);
        stat->size = file_->size();
        stat->valid |= ZIP_STAT_SIZE;
        return sizeof(zip_stat_t);
      }
      case ZIP_SOURCE_ERROR:
        return zip_error_to_data(&error_, data, length);
      case ZIP_SOURCE_SUPPORTS:
        return ZIP_SOURCE_SUPPORTS_SEEKABLE;
      case ZIP_SOURCE_CLOSE:
      case ZIP_SOURCE_FREE:
        return 0;
      default:
        zip_error_set(&error_, ZIP_ER_OPNOTSUPP, 0);
        return -1;
    }
  }

  zip_int64_t read(std::span<std::byte> out) {
    try {
      const std::size_t got = file_->read_at(offset_, out);
      offset_ += got;
      return static_cast<zip_int64_t>(got);
    } catch (...) {
      failure_ = std::current_exception();
      zip_error_set(&error_, ZIP_ER_READ, 0);
      return -1;
    }
  }

  std::shared_ptr<ReadableFile> file_;
  zip_t* archive_ = nullptr;
  zip_error_t error_ = {};
  std::uint64_t offset_ = 0;
  std::exception_ptr failure_;
};

class MemberSource final : public ByteSource {
 public:
  MemberSource(std::shared_ptr<ReadableFile> file, std::string member)
      : archive_(std::move(file)),
        member_(std::move(member)),
        name_(fmt::format("{}:{}", archive_.file()->path(), member_)) {
    for (const std::string& entry : {member_ + std::string(kMemberEnd), member_}) {
      index_ = zip_name_locate(archive_.get(), entry.c_str(), 0);
      if (index_ >= 0) break;
    }
    zip_stat_t stat;
    if (index_ < 0 || zip_stat_index(archive_.get(), index_, 0, &stat) != 0) {
      throw DataError(fmt::format("there is no member '{}'", member_), archive_.file()->path(),
                      "name one that is there, FILE.npz:MEMBER");
    }
    size_ = stat.size;
    if (stat.size / kMostPacking > stat.comp_size || stat.comp_size > archive_.file()->size()) {
      throw DataError(
          fmt::format("the archive is corrupt (member '{}' claims {} bytes)", member_, stat.size),
          archive_.file()->path(), "write or download the file again");
    }
    stored_ = stat.comp_method == ZIP_CM_STORE && stat.encryption_method == ZIP_EM_NONE;
    open();
  }
  ~MemberSource() override { close(); }

  const std::string& name() const override { return name_; }
  std::optional<std::uint64_t> size() const override { return size_; }
  bool seekable() const override { return stored_; }

  std::size_t read(std::span<std::byte> out) override {
    std::size_t filled = 0;
    while (filled < out.size()) {
      const std::size_t got = fetch(out.subspan(filled));
      if (got == 0) break;
      filled += got;
      offset_ += got;
    }
    // libzip compares the checksum when it is asked beyond the end.
    std::byte beyond;
    if (filled > 0 && offset_ == size_) fetch({&beyond, 1});
    return filled;
  }

  void seek(std::uint64_t offset) override {
    if (stored_ && zip_fseek(file_, static_cast<zip_int64_t>(offset), SEEK_SET) == 0) {
      offset_ = offset;
      return;
    }
    close();
    open();
    skip_bytes(*this, offset);
  }

  void compare_checksum() override {
    seek(0);
    skip_bytes(*this, size_);
  }

  std::unique_ptr<ByteSource> reopen() const override {
    return std::make_unique<MemberSource>(archive_.file(), member_);
  }

 private:
  std::size_t fetch(std::span<std::byte> out) {
    const zip_int64_t got = zip_fread(file_, out.data(), out.size());
    if (got < 0) refuse(zip_error_strerror(zip_file_get_error(file_)));
    return static_cast<std::size_t>(got);
  }

  void open() {
    file_ = zip_fopen_index(archive_.get(), index_, 0);
    if (file_ == nullptr) refuse(zip_strerror(archive_.get()));
    offset_ = 0;
  }

  void close() {
    if (file_ != nullptr) zip_fclose(file_);
    file_ = nullptr;
  }

  [[noreturn]] void refuse(const std::string& reason) {
    archive_.rethrow();
    throw DataError(fmt::format("the archive is corrupt ({})", reason),
                    fmt::format("{}, byte {}", name_, offset_), "write or download the file again");
  }

  ZipArchive archive_;
  std::string member_;
  std::string name_;
  zip_int64_t index_ = -1;
  std::uint64_t size_ = 0;
  std::uint64_t offset_ = 0;
  bool stored_ = false;
  zip_file_t* file_ = nullptr;
};

}  // namespace

std::vector<std::string> npz_members(FileSystem& files, const std::string& path) {
  const ZipArchive archive(files.open(path));
  std::vector<std::string> names;
  const zip_int64_t count = zip_get_num_entries(archive.get(), 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    const char* const entry = zip_get_name(archive.get(), i, 0);
    if (entry == nullptr) continue;
    std::string name = entry;
    if (name.ends_with(kMemberEnd)) name.resize(name.size() - kMemberEnd.size());
    names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::unique_ptr<ByteSource> open_npz_member(FileSystem& files, const std::string& path,
                                            const std::string& member) {
  return std::make_unique<MemberSource>(files.open(path), member);
}

}  // namespace ooc
