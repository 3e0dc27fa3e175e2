#include "engine/batches/sampled_counts.h"

#include "engine/batches/loaded_batch.h"
#include "engine/batches/prepared_batches.h"
#include "engine/model/program.h"
#include "sched/sampling/row_record.h"
#include "storage/stores/scratch_tensor.h"

namespace ooc {
namespace {

InputRows input_rows(DType dtype, const TensorLayout& layout) {
  return {dtype, layout, vertex_blocks_per_chunk(layout, dtype)};
}

}  // namespace

std::int64_t InputRows::bytes() const {
  std::int64_t cols = 0;
  for (std::int64_t slice = 0; slice < layout.slice_count(); ++slice) {
    cols += layout.slice_stride(slice);
  }
  return layout.rows * cols * static_cast<std::int64_t>(dtype_bytes(dtype));
}

std::int64_t InputRows::record_bytes() const {
  return round_up(layout.cols * static_cast<std::int64_t>(dtype_bytes(dtype)),
                  static_cast<std::int64_t>(RowRecord::kRowAlignment));
}

std::int64_t InputRows::slot_bytes() const {
  std::uint64_t bytes = 0;
  for (std::int64_t slice = 0; slice < layout.slice_count(); ++slice) {
    bytes += io_aligned(io_chunk_payload_bytes(layout, dtype, io_chunk_blocks, 0, slice));
  }
  return static_cast<std::int64_t>(bytes);
}

SampledCounts sampled_counts(const Dataset& dataset) {
  const Manifest& manifest = dataset.manifest();
  SampledCounts counts;
  counts.name = dataset.path();
  counts.graph = counts_of(dataset);
  counts.largest_chunk = largest_edge_chunk(dataset.edge_file(Direction::kOut));
  counts.train = manifest.split_counts[0];
  counts.judged = manifest.split_counts[1] + manifest.split_counts[2];
  counts.is_named = manifest.order != "natural";
  counts.labels = manifest.labels;
  counts.classes = manifest.classes;
  for (const TensorSpec& spec : tensor_specs(manifest)) {
    const VertexTensorFile* const file = dataset.tensor(spec.name);
    if (file == nullptr || file->layout().rows != dataset.vertices()) continue;
    counts.tensors[spec.name] = input_rows(file->dtype(), file->layout());
  }
  return counts;
}

SampledCounts sampled_counts(const AbsentGraph& graph) {
  const EdgeLayout& edges = graph.counts.edges;
  SampledCounts counts;
  counts.name = "--graph";
  counts.graph = graph.counts;
  counts.largest_chunk = static_cast<std::int64_t>(
      io_aligned(static_cast<std::uint64_t>(graph.counts.out.bytes / edges.chunk_count())));
  counts.train = graph.counts.train_vertices;
  counts.labels = graph.labels;
  counts.classes = graph.facts.classes;
  const auto add = [&](const char* name, DType dtype, std::int64_t cols) {
    counts.tensors[name] = input_rows(dtype, {edges.vertices, cols, edges.block_rows});
  };
  const auto& dtypes = graph.counts.stored_dtypes;
  add("features", dtypes.contains("features") ? dtypes.at("features") : DType::kF32,
      graph.facts.feature_cols);
  add("labels", label_dtype(graph.labels), label_cols(graph.labels, graph.facts.classes));
  add("splits", DType::kU8, 1);
  add("ids", DType::kI64, 1);
  add("degrees", DType::kI32, kDegreeColumns);
  counts.degrees = assumed_degrees(counts.vertices(), counts.edges(), counts.train);
  return counts;
}

std::vector<InputRows> stored_inputs(const SampledCounts& counts,
                                     const BatchLoaderOptions& options) {
  std::vector<InputRows> inputs;
  for (const BatchInput& input : packed_inputs(options)) {
    const auto found = counts.tensors.find(input.name);
    if (found != counts.tensors.end()) {
      inputs.push_back(found->second);
      continue;
    }
    const TensorLayout layout{counts.vertices(), input.cols, counts.graph.edges.block_rows};
    inputs.push_back({input.dtype, layout, scratch_io_chunk_blocks(layout, input.dtype)});
  }
  return inputs;
}

std::int64_t computed_bytes(const SampledCounts& counts, const BatchLoaderOptions& options) {
  const std::vector<BatchInput> packed = packed_inputs(options);
  const std::vector<InputRows> stored = stored_inputs(counts, options);
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < packed.size(); ++i) {
    if (!counts.tensors.contains(packed[i].name)) bytes += stored[i].bytes();
  }
  return bytes;
}

RowSizes row_sizes(const std::vector<InputRows>& inputs) {
  RowSizes sizes;
  for (const InputRows& input : inputs) {
    sizes.record += input.record_bytes();
    sizes.slots += input.slot_bytes();
  }
  return sizes;
}

}  // namespace ooc
