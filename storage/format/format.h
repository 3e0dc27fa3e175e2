// The bytes of a chunk file, format version 1. storage/format/README.md describes them for readers
// in other languages. All integers little-endian; all offsets in bytes from the start of the file.
//
//   [ header, 4096 bytes ][ payloads, each at a multiple of 4096 ][ index ][ footer, 64 bytes ]
//
// Bytes between payloads, after the header's fields and before the index are zero.
#pragma once

#include <bit>
#include <cstdint>

namespace ooc {

static_assert(std::endian::native == std::endian::little, "chunk files are little-endian");

inline constexpr std::uint64_t kChunkAlignment = 4096;
inline constexpr std::uint32_t kFormatVersion = 1;
inline constexpr char kHeaderMagic[8] = {'O', 'O', 'C', 'C', 'H', 'U', 'N', 'K'};
inline constexpr char kFooterMagic[8] = {'O', 'O', 'C', 'F', 'O', 'O', 'T', '1'};

enum class ChunkFileKind : std::uint32_t { kVertexTensor = 1, kEdges = 2, kBatches = 3 };

// Bits of ChunkFileHeader::edge_data.
inline constexpr std::uint32_t kEdgeWeights = 1;
inline constexpr std::uint32_t kEdgeTypes = 2;

struct ChunkFileHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t kind;         // ChunkFileKind
  std::uint32_t dtype;        // DType; 0 for edges and batches
  std::uint32_t edge_data;    // edges, batches: kEdgeWeights | kEdgeTypes; 0 for vertex tensors
  std::uint64_t rows;         // vertices of the graph
  std::uint64_t cols;         // columns; for edges and batches the number of edges
  std::uint64_t block_rows;   // 0 for batches
  std::uint64_t slice_width;  // vertex tensors; for edges and batches: columns of edge features
  std::uint64_t blocks_per_chunk;  // vertex tensors; for edges: blocks in a panel; 0 for batches
  std::uint64_t span_rows;         // edges; 0 for others
  std::uint64_t chunk_count;
  std::uint64_t checksum;  // XXH3-64 of the fields before
};
static_assert(sizeof(ChunkFileHeader) == 88);

struct ChunkIndexEntry {
  std::uint64_t offset;  // multiple of 4096; 0 where bytes is 0
  std::uint64_t bytes;
  std::uint64_t items;     // vertex tensor: rows; edges: edges; batches: vertices of the batch
  std::uint64_t checksum;  // XXH3-64 of the payload
};
static_assert(sizeof(ChunkIndexEntry) == 32);

struct ChunkFileFooter {
  std::uint64_t index_offset;
  std::uint64_t index_bytes;
  std::uint64_t index_checksum;  // XXH3-64 of the index
  std::uint64_t header_checksum;
  std::uint64_t file_bytes;
  std::uint64_t reserved;  // zero
  std::uint64_t checksum;  // XXH3-64 of the fields before
  char magic[8];
};
static_assert(sizeof(ChunkFileFooter) == 64);

// An edge chunk's payload: this, then `tile_count` TileHeaders, then the tiles.
struct EdgeChunkHeader {
  std::uint32_t tile_count;
  std::uint32_t reserved;  // zero
};
static_assert(sizeof(EdgeChunkHeader) == 8);

struct TileHeader {
  std::uint16_t block;     // destination block, counted from the panel's first
  std::uint16_t encoding;  // TileEncoding
  std::uint32_t edge_count;
  std::uint32_t row_count;     // runs; 0 for pairs
  std::uint32_t escape_count;  // pairs; 0 for runs
  std::uint64_t offset;        // of the tile from the start of the payload, multiple of 8

  bool operator==(const TileHeader&) const = default;
};
static_assert(sizeof(TileHeader) == 24);

}  // namespace ooc
