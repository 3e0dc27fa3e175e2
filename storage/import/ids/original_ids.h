// Ids that are any 64-bit integers: the distinct ones of an input, outside memory. Their dense ids,
// 0 to V - 1, follow their ascending order.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "storage/base/control.h"
#include "storage/base/types.h"
#include "storage/edges/sorted_runs.h"
#include "storage/io/file.h"

namespace ooc {

// Gives the next ids, any number of times each; none at the end.
using IdStream = std::function<std::span<const std::int64_t>()>;

// The distinct ids, ascending, in a scratch file that the destructor removes. The place of an id
// among them is its dense id. Memory: memory_for(size()). One thread.
class OriginalIds {
 public:
  struct Options {
    std::string scratch;            // begin of the names of scratch files
    std::string source;             // the file that lists the ids; empty where the edges do
    std::int64_t memory_bytes = 0;  // for everything held while ids are collected
  };
  // Reads `ids` to the end; `total` of them, for the progress (0: not known).
  OriginalIds(FileSystem& files, const Options& options, const IdStream& ids, std::int64_t total,
              const Control& control);
  ~OriginalIds();
  OriginalIds(const OriginalIds&) = delete;
  OriginalIds& operator=(const OriginalIds&) = delete;

  static std::int64_t memory_for(std::int64_t ids);
  // What a vector of ids takes in replace(), beside the ids.
  static constexpr std::int64_t kReplaceBytes = 16;
  // Arrays that grow hold so many times their elements while they move.
  static constexpr std::int64_t kGrowth = 3;

  std::int64_t size() const { return size_; }
  const std::string& source() const { return source_; }
  // The dense id; empty where no vertex has this one. Fast where ids come in order.
  std::optional<VertexId> find(std::int64_t id);
  // Puts dense ids in place of these, going through the file once. Throws DataError with a few of
  // those that no vertex has; `where` is their file.
  void replace(std::span<std::int64_t> ids, const std::string& where);
  // The ids from place `begin` on.
  void read(std::int64_t begin, std::span<std::int64_t> out) const;

 private:
  void write_distinct(const SortedRuns& runs, std::int64_t memory_bytes, const Control& control);

  FileSystem& files_;
  std::string path_;
  std::string source_;
  std::unique_ptr<ReadableFile> file_;
  std::int64_t size_ = 0;
  std::vector<std::int64_t> firsts_;  // of each page of the file
  std::vector<std::int64_t> page_;
  std::size_t page_number_ = 0;  // of page_, where that is not empty
};

}  // namespace ooc
