// A BlockIo that maps files and finds who uses pages before they came, or after they were given
// back: whatever isn't there is 0xff, NaN in rows and nonsense in edges.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "storage/base/errors.h"
#include "tests/support/aligned_buffer.h"

namespace ooc::test {

// Files and temporary files are those of `base`, which must outlive it.
class PoisonedMapBlockIo final : public BlockIo {
 public:
  explicit PoisonedMapBlockIo(BlockIo& base) : base_(base) {}

  // Of reads in place, and of others of mapped files.
  std::atomic<std::int64_t> in_place{0}, copied{0};
  // Bytes that are there, of all files, and the most so far.
  std::atomic<std::int64_t> there_bytes{0}, most_bytes{0};

  std::string_view name() const override { return "mapped"; }
  std::unique_ptr<BlockFile> open(const std::string& path) override {
    return std::make_unique<File>(*this, base_.open(path));
  }
  std::unique_ptr<BlockFile> create_temporary(const std::string& directory,
                                              std::uint64_t bytes) override {
    return base_.create_temporary(directory, bytes);
  }
  void submit(BlockRequest request) override {
    if (auto* file = dynamic_cast<File*>(request.file)) {
      request.file = file->base.get();
      const bool place = request.data == file->memory.data() + request.offset;
      ++(place ? in_place : copied);
      if (place && !file->take(request.offset, request.bytes)) {
        // It is there already, and in use: its bytes must not be touched.
        request.data = file->spare(request.bytes);
      }
    }
    base_.submit(std::move(request));
  }

 private:
  struct File final : BlockFile {
    File(PoisonedMapBlockIo& owner_io, std::unique_ptr<BlockFile> file)
        : owner(owner_io), base(std::move(file)), memory(base->size()) {
      std::memset(memory.data(), 0xff, memory.size());
    }
    const std::string& path() const override { return base->path(); }
    std::uint64_t size() const override { return base->size(); }
    bool direct() const override { return false; }
    std::span<const std::byte> mapping() const override { return memory.first(base->size()); }
    void release(std::uint64_t offset, std::uint64_t bytes) const override {
      const std::lock_guard lock(mutex);
      const auto found = users.find(offset);
      OOC_CHECK(found != users.end());
      if (--found->second > 0) return;
      users.erase(found);
      std::memset(memory.data() + offset, 0xff, bytes);
      owner.there_bytes -= static_cast<std::int64_t>(io_aligned(bytes));
    }
    // Whether it is the first user of the resident range.
    bool take(std::uint64_t offset, std::uint64_t bytes) {
      const std::lock_guard lock(mutex);
      if (users[offset]++ > 0) return false;
      owner.there_bytes += static_cast<std::int64_t>(io_aligned(bytes));
      owner.most_bytes = std::max(owner.most_bytes.load(), owner.there_bytes.load());
      return true;
    }
    std::byte* spare(std::size_t bytes) {
      const std::lock_guard lock(mutex);
      return spares.emplace_back(std::make_unique<AlignedBuffer>(bytes))->data();
    }

    PoisonedMapBlockIo& owner;
    std::unique_ptr<BlockFile> base;
    AlignedBuffer memory;
    mutable std::mutex mutex;
    mutable std::map<std::uint64_t, int> users;  // by offset
    std::vector<std::unique_ptr<AlignedBuffer>> spares;
  };

  BlockIo& base_;
};

}  // namespace ooc::test
