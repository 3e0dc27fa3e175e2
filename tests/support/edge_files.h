// Writes an edge file from edges in any order; reads edges that import would.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "storage/format/edge_file.h"
#include "storage/import/edges/edge_source.h"

namespace ooc::test {

inline ChunkFileInfo write_edge_file(FileSystem& files, const std::string& path,
                                     const EdgeLayout& layout, std::vector<Edge> edges) {
  const EdgeKeys keys(layout.vertices, layout.span_rows);
  std::sort(edges.begin(), edges.end(),
            [&](const Edge& a, const Edge& b) { return keys.key_of(a) < keys.key_of(b); });
  const std::byte none{};  // edges carry nothing
  EdgeFileWriter writer(files, path, layout);
  for (std::int64_t chunk = 0; chunk < layout.chunk_count(); ++chunk) {
    TileEncoder encoder(layout);
    for (const Edge& edge : edges) {
      const std::int64_t panel = edge.destination / layout.block_rows / layout.panel_blocks;
      if (edge.source / layout.span_rows * layout.panel_count() + panel == chunk) {
        encoder.add(edge, &none);
      }
    }
    writer.add(chunk, encoder.finish());
  }
  return writer.finish();
}

inline std::vector<Edge> read_edges(std::unique_ptr<TableReader> table,
                                    std::optional<std::int64_t> vertices = std::nullopt) {
  TableEdgeSource source(std::move(table), {}, vertices);
  std::vector<Edge> edges;
  EdgeBlock block;
  while (source.next(1000, block)) {
    edges.insert(edges.end(), block.edges.begin(), block.edges.end());
  }
  return edges;
}

}  // namespace ooc::test
