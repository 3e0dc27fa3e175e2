#include "kernels/edges/edge_work_cpu.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "kernels/edges/gather_cpu.h"
#include "kernels/edges/loop_tile.h"
#include "kernels/edges/tile_group.h"
#include "storage/base/errors.h"

namespace ooc::cpu {
namespace {

// What the program reads of what edges carry: added loops need no more.
EdgeData data_of(const EdgeProgram& program) {
  EdgeData data;
  for (const EdgeProgram::Load& load : program.loads) {
    if (load.load == EdgeLoad::kWeights) data.weights = true;
    if (load.load == EdgeLoad::kTypes) data.types = true;
    if (load.load != EdgeLoad::kFeatures) continue;
    data.feature_cols = program.values[static_cast<std::size_t>(load.value)].cols;
  }
  return data;
}

// A slice of a fold that sums neighbours' rows, straight from where they lie.
struct PlainSum {
  std::size_t streamed = 0;  // operand
  std::int64_t cols = 0;     // of both
  std::int64_t slice = 0;
  bool sliced = false;
  std::int64_t stride = 0;
  bool weighted = false;

  std::byte* at(const TileGroup& group, const SlicedRows& rows) const {
    return sliced ? group.at_hand(rows, cols, slice)
                  : rows.slice(slice, ceil_div(cols, kSliceWidth));
  }
  const void* sources(const TileGroup& group, const TileGroup::Entry& entry) const {
    return at(group, entry.streamed[streamed]);
  }
};

// Calls visit(sum, accumulator).
template <class Visit>
void for_each_sum(const EdgeProgram& program, const TileGroup& group, Visit&& visit) {
  for (const EdgeProgram::FoldStep& fold : program.folds) {
    const auto load = std::find_if(program.loads.begin(), program.loads.end(),
                                   [&](const auto& l) { return l.value == fold.inputs[0]; });
    const auto accumulator = static_cast<std::size_t>(fold.accumulators[0]);
    const EdgeProgram::Shape& shape = program.accumulators[accumulator];
    const TensorLayout layout{group.rows, shape.cols, group.rows};
    const bool sliced = shape.cols == program.slice_local_cols;
    const std::int64_t begin = sliced ? group.slice : 0;
    const std::int64_t end = sliced ? group.slice + 1 : layout.slice_count();
    for (std::int64_t slice = begin; slice < end; ++slice) {
      const PlainSum sum{static_cast<std::size_t>(load->operand),
                         shape.cols,
                         slice,
                         sliced,
                         layout.slice_stride(slice),
                         fold.inputs.size() > 1};
      visit(sum, sum.at(group, group.accumulators[accumulator]));
    }
  }
}

template <class T>
void run_plain_sum(const EdgeProgram& program, const TileGroup& group) {
  std::vector<SumGroup::Entry> entries(group.entries.size());
  for_each_sum(program, group, [&](const PlainSum& sum, void* accumulator) {
    for (std::size_t i = 0; i < entries.size(); ++i) {
      entries[i] = {group.entries[i].tile, sum.sources(group, group.entries[i])};
    }
    gather_sum<T>(SumGroup{entries, accumulator, sum.stride, sum.weighted});
  });
}

// The same over edges of neighbours in the train split.
template <class T>
void run_train_sum(const EdgeProgram& program, const TileGroup& group) {
  std::byte* at = group.scratch;
  EdgeBatch batch = place_batch(program, at);
  for (const TileGroup::Entry& entry : group.entries) {
    TileCursor cursor(entry.tile, splits_of(program, entry));
    while (cursor.next(program.batch_edges, batch)) {
      for_each_sum(program, group, [&](const PlainSum& sum, void* accumulator) {
        gather_sum<T>(SumEdges{batch, sum.sources(group, entry), accumulator, sum.stride,
                               sum.weighted ? entry.tile.weights : nullptr});
      });
    }
  }
}

template <class T>
class CpuEdgeWork final : public EdgeWork {
 public:
  CpuEdgeWork(const EdgeProgram& program, std::vector<RowKernel> kernels)
      : program_(program), kernels_(std::move(kernels)), loop_data_(data_of(program)) {
    OOC_CHECK(kernels_.size() == program.steps.size());
    std::set<std::size_t> summed;
    for (const EdgeProgram::Step& step : program.steps) {
      if (step.output.is_matrix) summed.insert(static_cast<std::size_t>(step.output.index));
    }
    summed_.assign(summed.begin(), summed.end());
    OOC_CHECK((is_plain_sum(program) && program.splits < 0) || program.batch_edges > 0);
  }

  void run(const EdgeWindow& window, const EdgeCall& call) const override {
    for (std::int64_t block = call.first_block; block < call.end_block; ++block) {
      const LoopTile loops = loops_of(window, block);
      const std::vector<void*> matrices = matrices_of(window, block);
      const auto at = static_cast<std::size_t>(block - window.first_block);
      const EdgeLayout& layout = *window.layout;
      TileGroup group{
          .entries = entries_of(window, block, loops),
          .rows = std::min(layout.block_rows, layout.vertices - block * layout.block_rows),
          .resident = window.resident.data() + at * program_.resident.size(),
          .accumulators = window.accumulators.data() + at * program_.accumulators.size(),
          .matrices = matrices,
          .first_slice = window.first_slice,
          .state = window.state,
          .scratch = call.scratch.data()};
      for (group.slice = call.first_slice; group.slice < call.end_slice; ++group.slice) {
        if (window.begins) zero_accumulators(group);
        fold(group);
      }
    }
  }

 private:
  // Of the vertices that get a loop, where their span is in the window.
  LoopTile loops_of(const EdgeWindow& window, std::int64_t block) const {
    if (window.self_loops == nullptr) return {};
    const std::int64_t span = own_span(window, block);
    if (span < window.first_span || span >= window.end_span()) return {};
    return make_loop_tile(*window.layout, loop_data_, block, window.self_loops);
  }
  static std::int64_t own_span(const EdgeWindow& window, std::int64_t block) {
    return block * window.layout->block_rows / window.layout->span_rows;
  }

  // In the order of spans; an added loop comes after its span's.
  std::vector<TileGroup::Entry> entries_of(const EdgeWindow& window, std::int64_t block,
                                           const LoopTile& loops) const {
    std::vector<TileGroup::Entry> entries;
    for (std::size_t i = 0; i < window.spans.size(); ++i) {
      const SlicedRows* rows = window.streamed.data() + i * program_.streamed.size();
      const std::span<const PanelTile> tiles = window.spans[i].tiles;
      const auto tile = std::lower_bound(
          tiles.begin(), tiles.end(), block,
          [](const PanelTile& entry, std::int64_t wanted) { return entry.block < wanted; });
      if (tile != tiles.end() && tile->block == block) entries.push_back({tile->tile, rows});
      const bool own = window.first_span + static_cast<std::int64_t>(i) == own_span(window, block);
      if (own && window.self_loops != nullptr) entries.push_back({loops.view(), rows});
    }
    return entries;
  }

  // Those that are read, and the block's sums.
  std::vector<void*> matrices_of(const EdgeWindow& window, std::int64_t block) const {
    std::vector<void*> matrices = window.matrices;
    auto partial = window.partials.begin() + std::ssize(summed_) * (block - window.first_block);
    for (const std::size_t at : summed_) matrices[at] = *partial++;
    return matrices;
  }

  void zero_accumulators(const TileGroup& group) const {
    for (std::size_t i = 0; i < program_.accumulators.size(); ++i) {
      const EdgeProgram::Shape& shape = program_.accumulators[i];
      const TensorLayout layout{group.rows, shape.cols, group.rows};
      const SlicedRows& rows = group.accumulators[i];
      const bool sliced = shape.cols == program_.slice_local_cols;
      for (std::int64_t s = 0; s < layout.slice_count(); ++s) {
        if (sliced && s != group.slice) continue;
        void* data =
            sliced ? group.at_hand(rows, shape.cols, s) : rows.slice(s, layout.slice_count());
        std::memset(data, 0,
                    static_cast<std::size_t>(group.rows * layout.slice_stride(s)) *
                        dtype_bytes(shape.dtype));
      }
    }
  }

  void fold(const TileGroup& group) const {
    if (!is_plain_sum(program_)) return run_batches<T>(program_, kernels_, group);
    program_.splits < 0 ? run_plain_sum<T>(program_, group) : run_train_sum<T>(program_, group);
  }

  EdgeProgram program_;
  std::vector<RowKernel> kernels_;   // by step
  std::vector<std::size_t> summed_;  // matrices
  EdgeData loop_data_;
};

}  // namespace

std::unique_ptr<EdgeWork> make_edge_work(const EdgeProgram& program,
                                         std::vector<RowKernel> kernels) {
  OOC_CHECK(program.real == DType::kF32 || program.real == DType::kF64);
  if (program.real == DType::kF32) {
    return std::make_unique<CpuEdgeWork<float>>(program, std::move(kernels));
  }
  return std::make_unique<CpuEdgeWork<double>>(program, std::move(kernels));
}

}  // namespace ooc::cpu
