#include "tests/support/fake_file_system.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "storage/base/errors.h"

namespace ooc::test {
namespace {

using Content = MemoryFileSystem::Content;

std::string normal(const std::string& path) {
  std::string result = std::filesystem::path(path).lexically_normal().string();
  if (result.size() > 1 && result.back() == '/') result.pop_back();
  return result;
}

class MemoryReadableFile final : public ReadableFile {
 public:
  MemoryReadableFile(std::string path, std::shared_ptr<Content> content)
      : path_(std::move(path)), content_(std::move(content)), size_(content_->bytes.size()) {}

  const std::string& path() const override { return path_; }
  std::uint64_t size() const override { return size_; }

  std::size_t read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    const std::lock_guard lock(content_->mutex);
    const std::vector<std::byte>& bytes = content_->bytes;
    if (offset >= bytes.size()) return 0;
    const std::size_t count = std::min<std::size_t>(out.size(), bytes.size() - offset);
    if (count > 0) std::memcpy(out.data(), bytes.data() + offset, count);
    return count;
  }

  // A copy, so that later writes cannot move it.
  std::span<const std::byte> map() override {
    const std::lock_guard lock(content_->mutex);
    if (mapped_.empty()) mapped_ = content_->bytes;
    return mapped_;
  }

 private:
  std::string path_;
  std::shared_ptr<Content> content_;
  std::uint64_t size_;
  std::vector<std::byte> mapped_;
};

class MemoryWritableFile final : public WritableFile {
 public:
  MemoryWritableFile(std::string path, std::shared_ptr<Content> content)
      : path_(std::move(path)), content_(std::move(content)) {}

  const std::string& path() const override { return path_; }

  void write_at(std::uint64_t offset, std::span<const std::byte> data) override {
    if (closed_) throw_file_error(EBADF, "cannot write", path_, offset);
    if (data.empty()) return;
    const std::lock_guard lock(content_->mutex);
    std::vector<std::byte>& bytes = content_->bytes;
    bytes.resize(std::max<std::size_t>(bytes.size(), offset + data.size()));
    std::memcpy(bytes.data() + offset, data.data(), data.size());
  }
  void truncate(std::uint64_t bytes) override {
    if (closed_) throw_file_error(EBADF, "cannot shorten", path_);
    const std::lock_guard lock(content_->mutex);
    content_->bytes.resize(bytes);
  }
  void sync() override {
    if (closed_) throw_file_error(EBADF, "cannot sync", path_);
  }
  void close() override { closed_ = true; }

 private:
  std::string path_;
  std::shared_ptr<Content> content_;
  bool closed_ = false;
};

class MemoryFileLock final : public FileLock {
 public:
  explicit MemoryFileLock(std::shared_ptr<Content> content) : content_(std::move(content)) {}
  ~MemoryFileLock() override { content_->locked = false; }

 private:
  std::shared_ptr<Content> content_;
};

// Whether a call with this count (from 1) fails.
bool fails(std::int64_t count, std::int64_t first_failing) {
  return first_failing > 0 && count >= first_failing;
}

class FaultyReadableFile final : public ReadableFile {
 public:
  FaultyReadableFile(std::unique_ptr<ReadableFile> base, FaultyFileSystem& files)
      : base_(std::move(base)), files_(files) {}

  const std::string& path() const override { return base_->path(); }
  std::uint64_t size() const override { return base_->size(); }

  std::size_t read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    std::size_t largest = files_.counts.largest_read;
    while (largest < out.size() &&
           !files_.counts.largest_read.compare_exchange_weak(largest, out.size())) {
    }
    if (fails(++files_.counts.reads, files_.faults.first_failing_read)) {
      throw_file_error(EIO, "cannot read", path(), offset);
    }
    const std::size_t limit = files_.faults.short_read_bytes;
    return base_->read_at(offset, limit == 0 ? out : out.first(std::min(limit, out.size())));
  }

  std::span<const std::byte> map() override {
    ++files_.counts.maps;
    return base_->map();
  }

 private:
  std::unique_ptr<ReadableFile> base_;
  FaultyFileSystem& files_;
};

class FaultyWritableFile final : public WritableFile {
 public:
  FaultyWritableFile(std::unique_ptr<WritableFile> base, FaultyFileSystem& files)
      : base_(std::move(base)), files_(files) {}

  const std::string& path() const override { return base_->path(); }

  void write_at(std::uint64_t offset, std::span<const std::byte> data) override {
    const Faults& faults = files_.faults;
    if (files_.counts.changes + 1 == faults.dies_at_change) {
      base_->write_at(offset, data.first(data.size() / 2));
    }
    files_.change(path());
    const std::int64_t count = ++files_.counts.writes;
    if (fails(count, faults.first_failing_write)) {
      if (faults.torn_write && count == faults.first_failing_write) {
        base_->write_at(offset, data.first(data.size() / 2));
      }
      throw_file_error(faults.write_error, "cannot write", path(), offset);
    }
    base_->write_at(offset, data);
  }
  void truncate(std::uint64_t bytes) override {
    files_.change(path());
    base_->truncate(bytes);
  }
  void sync() override {
    files_.change(path());
    if (fails(++files_.counts.syncs, files_.faults.first_failing_sync)) {
      throw_file_error(EIO, "cannot sync", path());
    }
    base_->sync();
  }
  void close() override { base_->close(); }

 private:
  std::unique_ptr<WritableFile> base_;
  FaultyFileSystem& files_;
};

}  // namespace

MemoryFileSystem::MemoryFileSystem() : tree_{{"/", nullptr}, {".", nullptr}} {}

MemoryFileSystem::Tree::iterator MemoryFileSystem::find(const std::string& path,
                                                        const char* action) {
  const auto node = tree_.find(normal(path));
  if (node == tree_.end()) throw_file_error(ENOENT, action, path);
  return node;
}

void MemoryFileSystem::require_parent(const std::string& path, const char* action) {
  const auto parent = tree_.find(parent_path(normal(path)));
  if (parent == tree_.end()) {
    throw IoError(std::string(action) + ": its directory does not exist", path, "create it first");
  }
  if (parent->second != nullptr) throw_file_error(ENOTDIR, action, path);
}

std::unique_ptr<ReadableFile> MemoryFileSystem::open(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<Content>& content = find(path, "cannot open file")->second;
  if (content == nullptr) throw_file_error(EISDIR, "cannot open file", path);
  const std::lock_guard content_lock(content->mutex);
  return std::make_unique<MemoryReadableFile>(path, content);
}

std::unique_ptr<WritableFile> MemoryFileSystem::create(const std::string& path) {
  const std::lock_guard lock(mutex_);
  require_parent(path, "cannot create file");
  const auto [node, is_new] = tree_.try_emplace(normal(path), nullptr);
  if (is_new) {
    node->second = std::make_shared<Content>();
  } else if (node->second == nullptr) {
    throw_file_error(EISDIR, "cannot create file", path);
  }
  const std::lock_guard content_lock(node->second->mutex);
  node->second->bytes.clear();
  return std::make_unique<MemoryWritableFile>(path, node->second);
}

std::unique_ptr<WritableFile> MemoryFileSystem::update(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const auto node = find(path, "cannot open file to write");
  if (node->second == nullptr) throw_file_error(EISDIR, "cannot open file to write", path);
  return std::make_unique<MemoryWritableFile>(path, node->second);
}

bool MemoryFileSystem::exists(const std::string& path) {
  const std::lock_guard lock(mutex_);
  return tree_.contains(normal(path));
}

bool MemoryFileSystem::is_directory(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const auto node = tree_.find(normal(path));
  return node != tree_.end() && node->second == nullptr;
}

std::vector<std::string> MemoryFileSystem::list(const std::string& directory) {
  const std::lock_guard lock(mutex_);
  const auto node = find(directory, "cannot list directory");
  if (node->second != nullptr) throw_file_error(ENOTDIR, "cannot list directory", directory);
  std::vector<std::string> names;
  for (const auto& [path, content] : tree_) {
    if (path != "/" && path != "." && parent_path(path) == node->first) {
      names.push_back(base_name(path));
    }
  }
  return names;
}

void MemoryFileSystem::create_directories(const std::string& path) {
  const std::lock_guard lock(mutex_);
  for (std::string name = normal(path);; name = parent_path(name)) {
    const auto [node, is_new] = tree_.try_emplace(name, nullptr);
    if (node->second != nullptr) throw_file_error(ENOTDIR, "cannot create directory", path);
    if (!is_new) return;
  }
}

MemoryFileSystem::Tree MemoryFileSystem::take(const std::string& path) {
  Tree taken;
  for (auto node = tree_.begin(); node != tree_.end();) {
    if (node->first == path || node->first.starts_with(path + "/")) {
      taken.emplace(node->first.substr(path.size()), node->second);
      node = tree_.erase(node);
    } else {
      ++node;
    }
  }
  return taken;
}

void MemoryFileSystem::put(const std::string& path, const Tree& tree) {
  for (const auto& [name, content] : tree) tree_[path + name] = content;
}

void MemoryFileSystem::rename(const std::string& from, const std::string& to) {
  const std::lock_guard lock(mutex_);
  const bool from_directory = find(from, "cannot rename")->second == nullptr;
  require_parent(to, "cannot rename");
  const std::string target = normal(to);
  if (const auto node = tree_.find(target); node != tree_.end()) {
    const auto next = std::next(node);
    const bool filled = next != tree_.end() && next->first.starts_with(target + "/");
    if (filled) throw_file_error(ENOTEMPTY, "cannot rename to " + to, from);
    if (from_directory != (node->second == nullptr)) {
      throw_file_error(from_directory ? ENOTDIR : EISDIR, "cannot rename to " + to, from);
    }
  }
  put(target, take(normal(from)));
}

void MemoryFileSystem::exchange(const std::string& a, const std::string& b) {
  const std::lock_guard lock(mutex_);
  find(a, "cannot swap");
  find(b, "cannot swap");
  const Tree of_a = take(normal(a));
  const Tree of_b = take(normal(b));
  put(normal(a), of_b);
  put(normal(b), of_a);
}

void MemoryFileSystem::remove_all(const std::string& path) {
  const std::lock_guard lock(mutex_);
  take(normal(path));
}

std::unique_ptr<FileLock> MemoryFileSystem::lock(const std::string& path) {
  if (!exists(path)) create(path);
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<Content> content = find(path, "cannot lock")->second;
  if (content == nullptr) throw_file_error(EISDIR, "cannot lock", path);
  if (content->locked.exchange(true)) return nullptr;
  return std::make_unique<MemoryFileLock>(content);
}

void MemoryFileSystem::sync_directory(const std::string& path) {
  if (!is_directory(path)) throw_file_error(ENOENT, "cannot sync directory", path);
}

std::unique_ptr<ReadableFile> FaultyFileSystem::open(const std::string& path) {
  return std::make_unique<FaultyReadableFile>(base_.open(path), *this);
}

void FaultyFileSystem::change(const std::string& path) {
  const std::int64_t count = ++counts.changes;
  if (faults.dies_at_change > 0 && count >= faults.dies_at_change) {
    throw_file_error(EIO, "the process is dead", path);
  }
}

std::unique_ptr<WritableFile> FaultyFileSystem::create(const std::string& path) {
  change(path);
  return std::make_unique<FaultyWritableFile>(base_.create(path), *this);
}

std::unique_ptr<WritableFile> FaultyFileSystem::update(const std::string& path) {
  return std::make_unique<FaultyWritableFile>(base_.update(path), *this);
}

void FaultyFileSystem::rename(const std::string& from, const std::string& to) {
  change(from);
  if (fails(++counts.renames, faults.first_failing_rename)) {
    throw_file_error(EIO, "cannot rename to " + to, from);
  }
  base_.rename(from, to);
}

void FaultyFileSystem::exchange(const std::string& a, const std::string& b) {
  change(a);
  if (fails(++counts.renames, faults.first_failing_rename)) {
    throw_file_error(EIO, "cannot swap with " + b, a);
  }
  base_.exchange(a, b);
}

void FaultyFileSystem::sync_directory(const std::string& path) {
  change(path);
  if (fails(++counts.syncs, faults.first_failing_sync)) {
    throw_file_error(EIO, "cannot sync directory", path);
  }
  base_.sync_directory(path);
}

TemporaryDirectory::TemporaryDirectory()
    : path_((std::filesystem::temp_directory_path() / "ooc-test-XXXXXX").string()) {
  if (::mkdtemp(path_.data()) == nullptr) {
    throw std::runtime_error("cannot create a temporary directory: " + path_);
  }
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace ooc::test
