// What a value is in storage: the tensors of PassBuilder's drafts.
#include <algorithm>
#include <bit>
#include <utility>

#include "sched/plan/io_chunks.h"
#include "sched/plan/passes/passes.h"
#include "sched/plan/passes/stages.h"
#include "storage/base/errors.h"
#include "storage/format/vertex_tensor.h"
#include "storage/stores/scratch_tensor.h"

namespace ooc {
namespace {

// Into halves until all slices of one together take few bytes: what the row-wise steps hold of the
// tensor at a time, and the grain in which it stays in memory. Never smaller than a row group, nor
// than what is worth a transfer.
void cut_blocks(PlannedTensor& tensor, std::int64_t most_group_rows) {
  constexpr std::int64_t kBlockBytes = 4 << 20;
  std::int64_t& rows = tensor.layout.block_rows;
  if (!std::has_single_bit(static_cast<std::uint64_t>(rows))) return;
  while (rows > most_group_rows && payload_bytes(tensor, 0, 1) > kBlockBytes) rows /= 2;
}

bool leaves(const Program& program, ValueId id) {
  return std::find(program.outputs.begin(), program.outputs.end(), id) != program.outputs.end();
}

// Of what no resident range holds when it is made. A bit an element says which ones are there; rows
// that are nearly dense are written as they are.
double packed_share(const Value& value, const GraphCounts& graph) {
  constexpr double kBits = 1.0 / 32, kNearlyDense = 7.0 / 8;
  double density = value.density;
  if (value.train_only && graph.train_vertices > 0) {
    density *=
        static_cast<double>(graph.train_vertices) / static_cast<double>(graph.edges.vertices);
  }
  return density + kBits < kNearlyDense ? density + kBits : 1;
}

}  // namespace

// Devices make whole I/O chunks: there have to be a few for each, where pages allow it.
std::int64_t PassBuilder::most_io_chunk_blocks(const PlannedTensor& tensor) const {
  constexpr std::int64_t kFew = 8;
  if (options_.devices == 1) return kNoMostBlocks;
  return tensor.layout.block_count() / (kFew * options_.devices);
}

PlannedTensor PassBuilder::describe_tensor(int section, ValueId id) const {
  const Value& value = program(section).values[static_cast<std::size_t>(id)];
  PlannedTensor tensor;
  tensor.name = value.name;
  tensor.dtype = stored_dtype(value, graph_);
  tensor.layout = {graph_.edges.vertices, value.cols, graph_.edges.block_rows};
  tensor.input = value.kind == ValueKind::kInput;
  const bool file = tensor.input && !graph_.produced_inputs.contains(tensor.name);
  const bool read_by_host =
      !tensor.input && !options_.store_outputs && leaves(program(section), id);
  if (!file && !read_by_host) cut_blocks(tensor, options_.compute.most_group_rows);
  tensor.io_chunk_blocks =
      file ? vertex_blocks_per_chunk(tensor.layout, tensor.dtype)
           : scratch_io_chunk_blocks(tensor.layout, tensor.dtype, most_io_chunk_blocks(tensor));
  const bool packs = !tensor.input && !options_.device && tensor.dtype == DType::kF32;
  if (packs) tensor.packed = packed_share(value, graph_);
  return tensor;
}

int PassBuilder::kept_tensor_of(Draft& draft, int section, ValueId made) const {
  int& known =
      draft.value_tensors[static_cast<std::size_t>(section)][static_cast<std::size_t>(made)];
  if (known >= 0) return known;
  PlannedTensor tensor = describe_tensor(section, made);
  tensor.kept = kept_[static_cast<std::size_t>(section)];
  tensor.layout.rows = tensor.kept.index(tensor.layout.rows);
  tensor.io_chunk_blocks =
      scratch_io_chunk_blocks(tensor.layout, tensor.dtype, most_io_chunk_blocks(tensor));
  draft.tensors.push_back(std::move(tensor));
  return known = static_cast<int>(draft.tensors.size()) - 1;
}

int PassBuilder::tensor_of(Draft& draft, int section, ValueId id) const {
  int& known = draft.value_tensors[static_cast<std::size_t>(section)][static_cast<std::size_t>(id)];
  if (known >= 0) return known;
  PlannedTensor tensor = describe_tensor(section, id);
  std::size_t at = draft.tensors.size();
  for (std::size_t i = 0; i < draft.tensors.size() && tensor.input; ++i) {
    if (draft.tensors[i].input && draft.tensors[i].name == tensor.name) at = i;
  }
  if (at == draft.tensors.size()) {
    draft.tensors.push_back(std::move(tensor));
  } else {
    OOC_CHECK(draft.tensors[at].layout.cols == tensor.layout.cols &&
              draft.tensors[at].dtype == tensor.dtype);
  }
  return known = static_cast<int>(at);
}

}  // namespace ooc
