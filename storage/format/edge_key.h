// An edge as one number, ascending in the order of edges in an edge file: by source span, then
// destination, then source. What is sorted outside memory is these.
#pragma once

#include <bit>
#include <cstdint>

#include "storage/base/types.h"

namespace ooc {

struct Edge {
  VertexId source = 0;
  VertexId destination = 0;

  bool operator==(const Edge&) const = default;
};

// A key has twice the bits of a vertex id, so ids must fit 32.
inline constexpr std::int64_t kMaxVertices = std::int64_t{1} << 32;

class EdgeKeys {
 public:
  // `vertices` is at most kMaxVertices, `span_rows` a power of two of at most kMaxBlockRows.
  EdgeKeys(std::int64_t vertices, std::int64_t span_rows)
      : span_bits_(std::countr_zero(static_cast<std::uint64_t>(span_rows))),
        vertex_bits_(static_cast<int>(std::bit_width(static_cast<std::uint64_t>(vertices - 1)))) {}

  std::uint64_t key_of(const Edge& edge) const {
    const auto source = static_cast<std::uint64_t>(edge.source);
    return span_part(source >> span_bits_) |
           static_cast<std::uint64_t>(edge.destination) << span_bits_ | (source & source_mask());
  }

  Edge edge_of(std::uint64_t key) const {
    return {static_cast<VertexId>(span_of(key) << span_bits_ | (key & source_mask())),
            destination_of(key)};
  }

  VertexId destination_of(std::uint64_t key) const {
    const std::uint64_t mask = (std::uint64_t{1} << vertex_bits_) - 1;
    return static_cast<VertexId>(key >> span_bits_ & mask);
  }

  // Of the source, counted from its span's first.
  std::uint32_t local_source_of(std::uint64_t key) const {
    return static_cast<std::uint32_t>(key & source_mask());
  }

  // The least key with this span and destination.
  std::uint64_t first_key(std::int64_t span, VertexId destination) const {
    return span_part(static_cast<std::uint64_t>(span)) | static_cast<std::uint64_t>(destination)
                                                             << span_bits_;
  }
  // The largest.
  std::uint64_t last_key(std::int64_t span, VertexId destination) const {
    return first_key(span, destination) | source_mask();
  }

 private:
  std::uint64_t source_mask() const { return (std::uint64_t{1} << span_bits_) - 1; }
  // Where there is one span only, the shift may be the width of the type.
  std::uint64_t span_part(std::uint64_t span) const {
    return span == 0 ? 0 : span << (vertex_bits_ + span_bits_);
  }
  std::uint64_t span_of(std::uint64_t key) const {
    const int shift = vertex_bits_ + span_bits_;
    return shift >= 64 ? 0 : key >> shift;
  }

  int span_bits_;
  int vertex_bits_;
};

}  // namespace ooc
