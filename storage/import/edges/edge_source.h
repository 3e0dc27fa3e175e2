// Streams an edge list and what its edges carry: [E, 2] (source, destination), or [2, E] in an
// array, as PyG saves edge_index. A [2, 2] array is read as [E, 2].
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "storage/base/aligned_vector.h"
#include "storage/base/control.h"
#include "storage/format/edge_key.h"
#include "storage/format/tile.h"
#include "storage/import/edges/edge_data_input.h"
#include "storage/import/formats/table_reader.h"
#include "storage/io/file.h"

namespace ooc {

struct EdgeBlock {
  std::uint64_t number = 0;  // of the blocks since the start
  AlignedVector<Edge> edges;
  AlignedVector<std::byte> data;  // EdgeData::bytes() for each edge
};

// The ids of the edges' ends, source and destination in turn.
inline std::span<std::int64_t> ids_of(std::span<Edge> edges) {
  static_assert(sizeof(Edge) == 2 * sizeof(std::int64_t));
  return {reinterpret_cast<std::int64_t*>(edges.data()), 2 * edges.size()};
}

// One thread at a time.
class EdgeSource {
 public:
  virtual ~EdgeSource() = default;
  // Empty where only reading to the end tells.
  virtual std::optional<std::int64_t> known_edges() const = 0;
  // Fills `block` with the next edges, at most `max_edges`. False at the end.
  virtual bool next(std::int64_t max_edges, EdgeBlock& block) = 0;
  virtual void rewind() = 0;
};

// How many of the weights are no positive number.
struct WeightSigns {
  std::int64_t negative = 0;
  std::int64_t zero = 0;
};

// Reads tables; checks everything in them. DataError (row or line, value) for a negative id, an id
// at or above `vertices` (kMaxVertices where that is not given), unless ids are free, and for
// tables of other shapes.
class TableEdgeSource final : public EdgeSource {
 public:
  TableEdgeSource(std::unique_ptr<TableReader> edges, EdgeDataTables data,
                  std::optional<std::int64_t> vertices, std::string vertices_from = "");

  // From now on ids may be any 64-bit integers.
  void free_ids() { free_ids_ = true; }

  const EdgeData& data() const { return data_; }
  const std::string& name() const { return edges_->name(); }
  std::optional<std::int64_t> known_edges() const override;
  // Reads text through, the first time.
  std::int64_t count_edges(const Control& control);
  bool next(std::int64_t max_edges, EdgeBlock& block) override;
  void rewind() override;

  // Of what was read so far.
  VertexId largest_id() const { return largest_id_; }
  std::int64_t largest_type() const { return largest_type_; }
  const WeightSigns& weight_signs() const { return weight_signs_; }

 private:
  void check_ids(std::span<const Edge> edges);
  [[noreturn]] void refuse_id(VertexId id, std::int64_t row) const;
  void read_data(EdgeBlock& block);
  void count_signs();
  void read_floats(TableReader& table, EdgeBlock& block, std::size_t offset);
  void check_ends();

  std::unique_ptr<TableReader> edges_;
  EdgeDataTables tables_;
  EdgeData data_;
  std::optional<std::int64_t> vertices_;
  std::string vertices_from_;  // for messages: "the rows of x.npy"
  bool free_ids_ = false;
  std::int64_t row_ = 0;
  std::uint64_t number_ = 0;
  VertexId largest_id_ = -1;
  std::int64_t largest_type_ = -1;
  WeightSigns weight_signs_;  // since the start
  std::vector<float> floats_;
  std::vector<std::uint16_t> types_;
};

// Edges kept in a scratch file, for inputs that are dear to read again or whose counts must be
// known first.
class SpooledEdgeSource final : public EdgeSource {
 public:
  // Writes all of `source` to `path`, which the destructor removes.
  SpooledEdgeSource(FileSystem& files, std::string path, EdgeSource& source, std::size_t data_bytes,
                    const Control& control);
  ~SpooledEdgeSource() override;

  std::optional<std::int64_t> known_edges() const override { return edges_; }
  bool next(std::int64_t max_edges, EdgeBlock& block) override;
  void rewind() override;

 private:
  FileSystem& files_;
  std::string path_;
  std::unique_ptr<ReadableFile> file_;
  std::size_t data_bytes_;
  std::int64_t block_edges_;
  std::int64_t edges_ = 0;
  std::int64_t row_ = 0;
  std::uint64_t number_ = 0;
};

// The number of vertices in a graph with this largest id. DataError where that is not credible for
// so few edges.
std::int64_t vertices_of_largest_id(VertexId largest, std::int64_t edges, const std::string& name);

}  // namespace ooc
