// `ooc-prep import --remap-ids`: edges whose ids are any 64-bit integers get dense ones, within a
// given memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "storage/base/control.h"
#include "storage/import/edges/edge_source.h"
#include "storage/import/ids/original_ids.h"

namespace ooc {

// The edges of another source with dense ids, and what they carry. Holds as many as fit
// `memory_bytes`: for each such block it goes through `ids` once.
class RemappedEdgeSource final : public EdgeSource {
 public:
  // `name` is the edges' file. `data_bytes` is what an edge carries. next() throws DataError for an
  // id that no vertex has.
  RemappedEdgeSource(EdgeSource& source, std::string name, OriginalIds& ids, std::size_t data_bytes,
                     std::int64_t memory_bytes, const Control& control);

  std::optional<std::int64_t> known_edges() const override { return source_.known_edges(); }
  bool next(std::int64_t max_edges, EdgeBlock& block) override;
  void rewind() override;

 private:
  bool refill();

  EdgeSource& source_;
  std::string name_;
  OriginalIds& ids_;
  std::size_t data_bytes_;
  const Control& control_;
  std::size_t most_edges_;
  EdgeBlock held_;
  std::size_t next_edge_ = 0;  // of held_
  std::uint64_t number_ = 0;
};

}  // namespace ooc
