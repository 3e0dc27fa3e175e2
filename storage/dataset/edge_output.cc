#include "storage/dataset/edge_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "storage/base/errors.h"
#include "storage/dataset/dataset.h"

namespace ooc {
namespace {

void add_degree(std::int32_t& degree, std::uint32_t more, VertexId vertex) {
  if (more > static_cast<std::uint32_t>(std::numeric_limits<std::int32_t>::max() - degree)) {
    throw DataError("a vertex with more than 2^31 - 1 edges", fmt::format("vertex {}", vertex),
                    "merge duplicate edges with --coalesce");
  }
  degree += static_cast<std::int32_t>(more);
}

}  // namespace

DegreeCollector::DegreeCollector(const EdgeLayout& layout, TakeRows take)
    : layout_(layout), take_(std::move(take)) {
  const auto rows = static_cast<std::size_t>(std::min(layout_.span_rows, layout_.vertices));
  degrees_.resize(rows);
  had_in_edge_.resize(rows);
}

void DegreeCollector::add(const JoinedUnit& unit) {
  while (span_ < unit.span) end_span();
  const VertexId first = span_ * layout_.span_rows;
  for (std::size_t i = 0; i < unit.degrees.size(); ++i) {
    const VertexId vertex = first + static_cast<VertexId>(i);
    add_degree(degrees_[i].in, unit.degrees[i].in, vertex);
    add_degree(degrees_[i].out, unit.degrees[i].out, vertex);
    if (unit.had_in_edge[i]) had_in_edge_[i] = true;
  }
  for (const auto& [vertex, loops] : unit.loops) {
    add_degree(degrees_[static_cast<std::size_t>(vertex - first)].loops, loops, vertex);
  }
  counts_.given.add(unit.findings);
}

void DegreeCollector::end_span() {
  const auto rows = static_cast<std::size_t>(
      std::min(layout_.span_rows, layout_.vertices - span_ * layout_.span_rows));
  const auto span = std::span<const Degrees>(degrees_).first(rows);
  for (std::size_t i = 0; i < rows; ++i) {
    if (!had_in_edge_[i]) ++counts_.given_without_in_edges;
    if (!had_in_edge_[i] && span[i].out == 0) ++counts_.given_without_edges;
    if (span[i].in == 0 && span[i].loops == 0) ++counts_.stored_without_in_edges;
    counts_.stored += std::int64_t{span[i].out} + span[i].loops;
  }
  take_(span);
  std::fill(degrees_.begin(), degrees_.end(), Degrees{});
  had_in_edge_.assign(had_in_edge_.size(), false);
  ++span_;
}

EdgeCounts DegreeCollector::finish() {
  while (span_ < layout_.span_count()) end_span();
  return counts_;
}

EdgeOutput::EdgeOutput(FileSystem& files, const std::string& directory, const EdgeLayout& layout,
                       const Control& control)
    : layout_(layout),
      control_(control),
      out_path_(join_path(directory, "edges.out")),
      in_(files, join_path(directory, "edges.in"), layout),
      degrees_(files, join_path(directory, "degrees"), DType::kI32,
               {layout.vertices, kDegreeColumns, layout.block_rows}),
      collector_(layout, [this](std::span<const Degrees> rows) {
        static_assert(sizeof(Degrees) == kDegreeColumns * sizeof(std::int32_t));
        degrees_.append_rows(rows.data(), static_cast<std::int64_t>(rows.size()));
      }) {}

void EdgeOutput::add(JoinedUnit unit) {
  collector_.add(unit);
  if (!unit.symmetric && !out_) out_ = in_.fork(out_path_, control_);
  if (out_) out_->add(unit.chunk, unit.symmetric ? unit.in : std::move(unit.out));
  in_.add(unit.chunk, std::move(unit.in));
}

EdgeCounts EdgeOutput::finish(Manifest& manifest) {
  const EdgeCounts counts = collector_.finish();
  OOC_CHECK(in_.edges() == counts.stored);
  manifest.edges = layout_;
  manifest.edges.edges = counts.stored;
  manifest.symmetric = out_ == nullptr;
  manifest.files["edges.in"] = in_.finish();
  if (out_) manifest.files["edges.out"] = out_->finish();
  manifest.files["degrees"] = degrees_.finish();
  return counts;
}

}  // namespace ooc
