#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "kernels/edges/edge_work_cpu.h"
#include "kernels/edges/gather_cpu.h"
#include "kernels/edges/tile_group.h"
#include "kernels/rows/cpu_traversal.h"

namespace ooc::cpu {
namespace {

constexpr std::int64_t kPrefetchEdges = 16;
constexpr std::int64_t kCacheLineBytes = 64;

// Calls body(cols), a compile-time constant where it is one of the usual widths: a whole slice, a
// value a head, an id.
template <class Body>
void with_width(std::int64_t cols, Body&& body) {
  switch (cols) {
    case 1:
      return body(std::integral_constant<std::int64_t, 1>{});
    case 8:
      return body(std::integral_constant<std::int64_t, 8>{});
    default:
      return with_columns(cols, body);
  }
}

// Row ids[i] of `from` to row i of `to`, elements of type E.
template <class E>
void copy_rows(const std::int32_t* ids, std::int64_t count, const E* from, std::int64_t from_stride,
               E* to, std::int64_t to_stride, std::int64_t cols) {
  with_width(cols, [=](auto width) {
    for (std::int64_t i = 0; i < count; ++i) {
      std::memcpy(to + i * to_stride, from + ids[i] * from_stride,
                  static_cast<std::size_t>(width) * sizeof(E));
    }
  });
}

// Likewise of rows that lie anywhere: asks for those of edges to come, `ahead` of the batch's
// first.
template <class E, class Id>
void copy_far_rows(const EdgeBatch& batch, const Id* ahead, std::int64_t ahead_count, const E* from,
                   std::int64_t from_stride, E* to, std::int64_t to_stride, std::int64_t cols) {
  const std::int64_t line = kCacheLineBytes / std::int64_t{sizeof(E)};
  with_width(cols, [=, count = batch.count, ids = batch.neighbours](auto width) {
    for (std::int64_t i = 0; i < count; ++i) {
      const E* later = from + ahead[std::min(i + kPrefetchEdges, ahead_count - 1)] * from_stride;
      for (std::int64_t c = 0; c < width; c += line) __builtin_prefetch(later + c);
      std::memcpy(to + i * to_stride, from + ids[i] * from_stride,
                  static_cast<std::size_t>(width) * sizeof(E));
    }
  });
}

// One run of a program over a tile group: the views of its values, and of its steps' operands.
template <class T>
class Run {
 public:
  Run(const EdgeProgram& program, const std::vector<RowKernel>& kernels, const TileGroup& group)
      : program_(program), kernels_(kernels), group_(group) {
    place_values();
    for (const EdgeProgram::Matrix& matrix : program.matrices) add_matrix(matrix);
    bind_steps();
  }

  void run() {
    for (const TileGroup::Entry& entry : group_.entries) {
      TileCursor cursor(entry.tile, splits_of(program_, entry));
      while (cursor.next(program_.batch_edges, batch_)) {
        for (const EdgeProgram::Load& load : program_.loads) fill(load, entry, cursor);
        for (std::size_t step = 0; step < steps_.size(); ++step) compute(step);
        for (const EdgeProgram::FoldStep& step : program_.folds) fold(step);
      }
    }
  }

 private:
  struct BoundStep {
    std::vector<MatrixView> inputs;
    MatrixView output;
  };

  bool sliced(std::int64_t cols) const { return cols == program_.slice_local_cols; }

  // The view of rows of a vertex tensor's columns, all of them or the slice at hand.
  MatrixView view_of(const EdgeProgram::Shape& shape, std::int64_t rows) const {
    const TensorLayout whole{rows, shape.cols, rows};
    MatrixView view{shape.dtype, rows, shape.cols, kSliceWidth, 0, 0, {}};
    if (sliced(shape.cols)) {
      view.first_column = group_.slice * kSliceWidth;
      view.cols = whole.slice_cols(group_.slice);
      view.last_stride = whole.slice_stride(group_.slice);
    } else {
      view.last_stride = whole.slice_stride(whole.slice_count() - 1);
    }
    return view;
  }

  void place_values() {
    std::byte* at = group_.scratch;
    batch_ = place_batch(program_, at);
    for (std::size_t value = 0; value < program_.values.size(); ++value) {
      MatrixView view = view_of(program_.values[value], 0);
      const std::int64_t stride =
          round_up(program_.batch_edges * view.stride(0) *
                       static_cast<std::int64_t>(dtype_bytes(program_.values[value].dtype)),
                   64);
      view.slices = {at, stride, at + (view.slice_count() - 1) * stride};
      at += edge_value_bytes(program_, static_cast<int>(value));
      values_.push_back(view);
    }
  }

  void add_matrix(const EdgeProgram::Matrix& matrix) {
    auto* data = static_cast<std::byte*>(group_.matrices[matrices_.size()]);
    MatrixView view{matrix.dtype, matrix.rows, matrix.cols, matrix.cols, matrix.cols, 0, {}};
    if (sliced(matrix.cols)) {
      view.first_column = group_.slice * kSliceWidth;
      view.cols = view.slice_width = std::min(kSliceWidth, matrix.cols - view.first_column);
      data += static_cast<std::size_t>(view.first_column) * dtype_bytes(matrix.dtype);
    }
    view.slices = one_slice(data);
    matrices_.push_back(view);
  }

  void bind_steps() {
    for (const EdgeProgram::Step& step : program_.steps) {
      BoundStep bound;
      for (const EdgeProgram::Operand& input : step.inputs) bound.inputs.push_back(operand(input));
      bound.output = operand(step.output);
      steps_.push_back(std::move(bound));
    }
  }

  MatrixView operand(const EdgeProgram::Operand& operand) const {
    const auto at = static_cast<std::size_t>(operand.index);
    return operand.is_matrix ? matrices_[at] : values_[at];
  }

  MatrixView value(int index) const {
    MatrixView view = values_[static_cast<std::size_t>(index)];
    view.rows = batch_.count;
    return view;
  }

  void fill(const EdgeProgram::Load& load, const TileGroup::Entry& entry, TileCursor& cursor) {
    const MatrixView to = value(load.value);
    const TileView& tile = entry.tile;
    const std::int64_t cols = program_.values[static_cast<std::size_t>(load.value)].cols;
    switch (load.load) {
      case EdgeLoad::kStreamed:
      case EdgeLoad::kResident:
        return dtype_bytes(to.dtype) == 8 ? fill_rows<std::uint64_t>(load, entry, to)
                                          : fill_rows<std::uint32_t>(load, entry, to);
      case EdgeLoad::kWeights:
        return to.dtype == DType::kF64 ? fill_carried<double>(tile.weights, cols, to)
                                       : fill_carried<float>(tile.weights, cols, to);
      case EdgeLoad::kTypes:
        return fill_carried<std::int32_t>(tile.types, cols, to);
      case EdgeLoad::kFeatures:
        return fill_carried<T>(tile.features, cols, to);
      case EdgeLoad::kParallelIndex:
        return cursor.parallel_indexes(batch_, to.data<std::int64_t>(0), to.stride(0));
    }
  }

  template <class E>
  void fill_rows(const EdgeProgram::Load& load, const TileGroup::Entry& entry,
                 const MatrixView& to) {
    const bool streamed = load.load == EdgeLoad::kStreamed;
    const SlicedRows& from =
        (streamed ? entry.streamed : group_.resident)[static_cast<std::size_t>(load.operand)];
    const std::int64_t cols = program_.values[static_cast<std::size_t>(load.value)].cols;
    for (std::int64_t slice = 0; slice < to.slice_count(); ++slice) {
      const std::byte* data = sliced(cols) ? group_.at_hand(from, cols, group_.slice)
                                           : from.slice(slice, to.slice_count());
      const auto* rows = reinterpret_cast<const E*>(data);
      auto* values = to.data<E>(slice);
      const std::int64_t stride = to.stride(slice);
      if (streamed && batch_.edges != nullptr) {
        copy_far_rows(batch_, batch_.neighbours, batch_.count, rows, stride, values, stride,
                      to.slice_cols(slice));
      } else if (streamed) {
        copy_far_rows(batch_, entry.tile.sources + batch_.first_edge,
                      entry.tile.edge_count - batch_.first_edge, rows, stride, values, stride,
                      to.slice_cols(slice));
      } else {
        copy_rows(batch_.rows, batch_.count, rows, stride, values, stride, to.slice_cols(slice));
      }
    }
  }

  // What edges carry lies beside each other, `cols` an edge.
  template <class To, class From>
  void fill_carried(const From* carried, std::int64_t cols, const MatrixView& to) {
    for (std::int64_t slice = 0; slice < to.slice_count(); ++slice) {
      To* rows = to.data<To>(slice);
      const std::int64_t first_column = to.first_column + slice * to.slice_width;
      for (std::int64_t i = 0; i < batch_.count; ++i) {
        const From* edge = carried + batch_.edge(i) * cols + first_column;
        To* row = rows + i * to.stride(slice);
        for (std::int64_t c = 0; c < to.slice_cols(slice); ++c) row[c] = static_cast<To>(edge[c]);
      }
    }
  }

  void compute(std::size_t index) {
    BoundStep& bound = steps_[index];
    const EdgeProgram::Step& step = program_.steps[index];
    for (std::size_t i = 0; i < step.inputs.size(); ++i) {
      if (!step.inputs[i].is_matrix) bound.inputs[i].rows = batch_.count;
    }
    if (!step.output.is_matrix) bound.output.rows = batch_.count;
    kernels_[index]({bound.inputs, {&bound.output, 1}, step.attributes, group_.state});
  }

  MatrixView accumulator(int index) const {
    const auto at = static_cast<std::size_t>(index);
    const EdgeProgram::Shape& shape = program_.accumulators[at];
    MatrixView view = view_of(shape, group_.rows);
    view.slices = group_.accumulators[at];
    if (sliced(shape.cols)) {
      view.slices = one_slice(group_.at_hand(view.slices, shape.cols, group_.slice));
    }
    return view;
  }

  void fold(const EdgeProgram::FoldStep& step) {
    const auto& in = step.inputs;
    const auto& out = step.accumulators;
    switch (step.fold) {
      case Fold::kSum: {
        const MatrixView rows = value(in[0]), sums = accumulator(out[0]);
        const MatrixView factors = in.size() > 1 ? value(in[1]) : MatrixView{};
        const MatrixView* const by = in.size() > 1 ? &factors : nullptr;
        return rows.dtype == DType::kF64 ? fold_sum<double>(batch_, rows, by, sums)
                                         : fold_sum<float>(batch_, rows, by, sums);
      }
      case Fold::kMax:
        return fold_max<T>(batch_, value(in[0]), value(in[1]), accumulator(out[0]),
                           accumulator(out[1]));
      case Fold::kSoftmax:
        return fold_softmax<T>(batch_, value(in[0]), value(in[1]), accumulator(out[0]),
                               accumulator(out[1]), accumulator(out[2]));
    }
  }

  const EdgeProgram& program_;
  const std::vector<RowKernel>& kernels_;
  const TileGroup& group_;
  EdgeBatch batch_;
  std::vector<MatrixView> values_, matrices_;
  std::vector<BoundStep> steps_;
};

}  // namespace

// Null: every edge is taken.
const std::uint8_t* splits_of(const EdgeProgram& program, const TileGroup::Entry& entry) {
  if (program.splits < 0) return nullptr;
  const SlicedRows& rows = entry.streamed[static_cast<std::size_t>(program.splits)];
  return reinterpret_cast<const std::uint8_t*>(rows.last);
}

EdgeBatch place_batch(const EdgeProgram& program, std::byte*& at) {
  const auto take = [&](auto*& ids) {
    ids = reinterpret_cast<std::remove_reference_t<decltype(ids)>>(at);
    at += round_up(program.batch_edges * std::int64_t{sizeof *ids}, 64);
  };
  EdgeBatch batch;
  take(batch.rows);
  take(batch.neighbours);
  if (program.splits >= 0) take(batch.edges);
  return batch;
}

template <class T>
void run_batches(const EdgeProgram& program, const std::vector<RowKernel>& kernels,
                 const TileGroup& group) {
  Run<T>(program, kernels, group).run();
}
template void run_batches<float>(const EdgeProgram&, const std::vector<RowKernel>&,
                                 const TileGroup&);
template void run_batches<double>(const EdgeProgram&, const std::vector<RowKernel>&,
                                  const TileGroup&);

}  // namespace ooc::cpu
