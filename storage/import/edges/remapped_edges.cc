#include "storage/import/edges/remapped_edges.h"

#include <algorithm>
#include <utility>

namespace ooc {
namespace {

constexpr std::int64_t kPieceEdges = 256 << 10;  // read at once
constexpr std::int64_t kMostHeld = 64 << 20;     // sorted at once: seconds without interruption

}  // namespace

RemappedEdgeSource::RemappedEdgeSource(EdgeSource& source, std::string name, OriginalIds& ids,
                                       std::size_t data_bytes, std::int64_t memory_bytes,
                                       const Control& control)
    : source_(source),
      name_(std::move(name)),
      ids_(ids),
      data_bytes_(data_bytes),
      control_(control) {
  const std::int64_t bytes_each =
      static_cast<std::int64_t>(sizeof(Edge) + data_bytes_) * OriginalIds::kGrowth +
      2 * OriginalIds::kReplaceBytes;
  most_edges_ =
      static_cast<std::size_t>(std::clamp(memory_bytes / bytes_each, kPieceEdges, kMostHeld));
}

bool RemappedEdgeSource::next(std::int64_t max_edges, EdgeBlock& block) {
  block.number = number_++;
  block.edges.clear();
  block.data.clear();
  const auto wanted = static_cast<std::size_t>(max_edges);
  while (block.edges.size() < wanted && (next_edge_ < held_.edges.size() || refill())) {
    const std::size_t count =
        std::min(wanted - block.edges.size(), held_.edges.size() - next_edge_);
    const auto edges = std::span(held_.edges).subspan(next_edge_, count);
    const auto data = std::span(held_.data).subspan(next_edge_ * data_bytes_, count * data_bytes_);
    block.edges.insert(block.edges.end(), edges.begin(), edges.end());
    block.data.insert(block.data.end(), data.begin(), data.end());
    next_edge_ += count;
  }
  return !block.edges.empty();
}

void RemappedEdgeSource::rewind() {
  source_.rewind();
  held_ = {};
  next_edge_ = 0;
  number_ = 0;
}

bool RemappedEdgeSource::refill() {
  held_.edges.clear();
  held_.data.clear();
  next_edge_ = 0;
  EdgeBlock piece;
  while (held_.edges.size() + kPieceEdges <= most_edges_ && source_.next(kPieceEdges, piece)) {
    held_.edges.insert(held_.edges.end(), piece.edges.begin(), piece.edges.end());
    held_.data.insert(held_.data.end(), piece.data.begin(), piece.data.end());
    control_.check();
  }
  ids_.replace(ids_of(held_.edges), name_);
  return !held_.edges.empty();
}

}  // namespace ooc
