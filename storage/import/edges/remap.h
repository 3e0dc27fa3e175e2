// `ooc-prep import --remap-ids`: edges whose ids are any 64-bit integers get dense ones, 0 to V - 1
// in the ascending order of the original ids, within a given memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "storage/base/control.h"
#include "storage/dataset/dataset_writer.h"
#include "storage/edges/sorted_runs.h"
#include "storage/import/edges/edge_source.h"
#include "storage/import/rows/vertex_order.h"
#include "storage/io/file.h"

namespace ooc {

// The distinct ids of an edge list, ascending, in a scratch file that the destructor removes. The
// place of an id among them is its dense id. Memory: memory_for(size()). One thread.
class OriginalIds {
 public:
  // Reads `edges` to the end. Scratch files have names that begin with `scratch`; `memory_bytes`
  // is for everything held meanwhile.
  OriginalIds(FileSystem& files, const std::string& scratch, EdgeSource& edges,
              std::int64_t memory_bytes, const Control& control);
  ~OriginalIds();
  OriginalIds(const OriginalIds&) = delete;
  OriginalIds& operator=(const OriginalIds&) = delete;

  static std::int64_t memory_for(std::int64_t ids);
  std::int64_t size() const { return size_; }
  // The dense id; empty where no edge has this one. Fast where ids come in order.
  std::optional<VertexId> find(std::int64_t id);
  // The ids from place `begin` on.
  void read(std::int64_t begin, std::span<std::int64_t> out) const;

 private:
  void write_distinct(const SortedRuns& runs, std::int64_t memory_bytes, const Control& control);

  FileSystem& files_;
  std::string path_;
  std::unique_ptr<ReadableFile> file_;
  std::int64_t size_ = 0;
  std::vector<std::int64_t> firsts_;  // of each page of the file
  std::vector<std::int64_t> page_;
  std::size_t page_number_ = 0;  // of page_, where that is not empty
};

// The edges of another source with dense ids, and what they carry. Holds as many as fit
// `memory_bytes`: for each such block it goes through `ids` once.
class RemappedEdgeSource final : public EdgeSource {
 public:
  // `ids` must hold those of all edges. `data_bytes` is what an edge carries.
  RemappedEdgeSource(EdgeSource& source, OriginalIds& ids, std::size_t data_bytes,
                     std::int64_t memory_bytes, const Control& control);

  std::optional<std::int64_t> known_edges() const override { return source_.known_edges(); }
  bool next(std::int64_t max_edges, EdgeBlock& block) override;
  void rewind() override;

 private:
  bool refill();

  EdgeSource& source_;
  OriginalIds& ids_;
  std::size_t data_bytes_;
  const Control& control_;
  std::size_t most_edges_;
  EdgeBlock held_;
  std::size_t next_edge_ = 0;  // of held_
  std::uint64_t number_ = 0;
};

// Writes the dataset's `original_ids`, in the order `new_ids` gives (empty: ascending).
void write_original_ids(FileSystem& files, DatasetWriter& writer, const OriginalIds& ids,
                        std::span<const VertexIndex> new_ids, std::int64_t memory_bytes,
                        const Control& control);

}  // namespace ooc
