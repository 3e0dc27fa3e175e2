// Where joined units go: the degrees of all vertices in order, and the files of a dataset.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "storage/edges/edge_join.h"
#include "storage/format/manifest.h"
#include "storage/format/vertex_tensor.h"

namespace ooc {

// What an edge list held and what is stored of it.
struct EdgeCounts {
  EdgeFindings given;
  std::int64_t given_without_in_edges = 0;  // vertices; a self loop is an in-edge
  std::int64_t given_without_edges = 0;     // vertices
  std::int64_t stored = 0;
  std::int64_t stored_without_in_edges = 0;
};

// Adds up the units of each span; hands on the degrees of all vertices, span after span. One
// thread.
class DegreeCollector {
 public:
  using TakeRows = std::function<void(std::span<const Degrees>)>;

  // Memory: the degrees of one span.
  DegreeCollector(const EdgeLayout& layout, TakeRows take);
  // Throws DataError where a vertex has more than 2^31 - 1 edges.
  void add(const JoinedUnit& unit);
  EdgeCounts finish();

 private:
  void end_span();

  EdgeLayout layout_;
  TakeRows take_;
  std::int64_t span_ = 0;  // being added up
  std::vector<Degrees> degrees_;
  std::vector<bool> had_in_edge_;
  EdgeCounts counts_;
};

// Writes edges.in, edges.out unless the graph turns out symmetric, and degrees. One thread.
class EdgeOutput {
 public:
  EdgeOutput(FileSystem& files, const std::string& directory, const EdgeLayout& layout,
             const Control& control);
  void add(JoinedUnit unit);
  // Fills in the manifest: the layout with the number of edges, `symmetric`, and the files.
  EdgeCounts finish(Manifest& manifest);

 private:
  EdgeLayout layout_;
  const Control& control_;
  std::string out_path_;
  EdgeFileWriter in_;
  std::unique_ptr<EdgeFileWriter> out_;  // from the first unit on that is not symmetric
  VertexTensorWriter degrees_;
  DegreeCollector collector_;
};

}  // namespace ooc
