#include "kernels/edges/edge_kernel_cpu.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "kernels/edges/gather_cpu.h"
#include "kernels/rows/cpu_traversal.h"
#include "storage/base/errors.h"
#include "storage/format/tensor_layout.h"

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

// By operand: its first pointer among all of theirs.
std::vector<std::size_t> first_pointers(const std::vector<EdgeProgram::Shape>& shapes) {
  std::vector<std::size_t> first;
  std::size_t at = 0;
  for (const EdgeProgram::Shape& shape : shapes) {
    first.push_back(at);
    at += static_cast<std::size_t>(ceil_div(shape.cols, kSliceWidth));
  }
  return first;
}

// Null: every edge is taken.
const std::uint8_t* splits_of(const EdgeProgram& program, const TileGroup::Entry& entry) {
  if (program.splits < 0) return nullptr;
  const auto operand = static_cast<std::size_t>(program.splits);
  return static_cast<const std::uint8_t*>(
      entry.streamed[first_pointers(program.streamed)[operand]]);
}

// A batch in scratch; `at` goes after it.
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

// One run of a program over a tile group: the views of its values, and of its steps' operands.
template <class T>
class Run {
 public:
  Run(const EdgeProgram& program, const TileGroup& group) : program_(program), group_(group) {
    place_values();
    for (const EdgeProgram::Matrix& matrix : program.matrices) add_matrix(matrix);
    bind_steps();
    first_streamed_ = first_pointers(program.streamed);
    first_resident_ = first_pointers(program.resident);
    first_accumulator_ = first_pointers(program.accumulators);
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
  MatrixView view_of(const EdgeProgram::Shape& shape, std::int64_t rows,
                     void* const* slices) const {
    const TensorLayout whole{rows, shape.cols, rows};
    MatrixView view{shape.dtype, rows, shape.cols, kSliceWidth, 0, 0, slices};
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
    std::size_t count = 0;
    for (const EdgeProgram::Shape& shape : program_.values) {
      count += static_cast<std::size_t>(ceil_div(shape.cols, kSliceWidth));
    }
    pointers_.reserve(count);  // views point into it
    for (std::size_t value = 0; value < program_.values.size(); ++value) {
      const EdgeProgram::Shape& shape = program_.values[value];
      MatrixView view = view_of(shape, 0, pointers_.data() + pointers_.size());
      std::byte* slice_at = at;
      for (std::int64_t slice = 0; slice < view.slice_count(); ++slice) {
        pointers_.push_back(slice_at);
        slice_at += round_up(program_.batch_edges * view.stride(slice) *
                                 static_cast<std::int64_t>(dtype_bytes(shape.dtype)),
                             64);
      }
      at += edge_value_bytes(program_, static_cast<int>(value));
      values_.push_back(view);
    }
  }

  void add_matrix(const EdgeProgram::Matrix& matrix) {
    void* const* slice = group_.matrices + matrices_.size();
    MatrixView view{matrix.dtype, matrix.rows, matrix.cols, matrix.cols, matrix.cols, 0, slice};
    matrices_.push_back(view);
    if (!sliced(matrix.cols)) return;
    const std::int64_t first = group_.slice * kSliceWidth;
    matrix_slices_.push_back(static_cast<std::byte*>(*slice) +
                             static_cast<std::size_t>(first) * dtype_bytes(matrix.dtype));
    sliced_matrices_.push_back(matrices_.size() - 1);
  }

  void bind_steps() {
    for (std::size_t i = 0; i < sliced_matrices_.size(); ++i) {
      MatrixView& view = matrices_[sliced_matrices_[i]];
      view.slices = matrix_slices_.data() + i;
      view.first_column = group_.slice * kSliceWidth;
      view.cols = std::min(kSliceWidth, view.cols - view.first_column);
      view.slice_width = view.cols;
    }
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
    const auto operand = static_cast<std::size_t>(load.operand);
    const std::size_t first = (streamed ? first_streamed_ : first_resident_)[operand];
    const void* const* from = (streamed ? entry.streamed : group_.resident) + first;
    if (sliced(program_.values[static_cast<std::size_t>(load.value)].cols)) from += group_.slice;
    for (std::int64_t slice = 0; slice < to.slice_count(); ++slice) {
      const auto* rows = static_cast<const E*>(from[slice]);
      auto* values = static_cast<E*>(to.slices[slice]);
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
    step.kernel({bound.inputs, {&bound.output, 1}, step.attributes, group_.state});
  }

  MatrixView accumulator(int index) const {
    const auto at = static_cast<std::size_t>(index);
    const EdgeProgram::Shape& shape = program_.accumulators[at];
    void* const* slices = group_.accumulators + first_accumulator_[at];
    return view_of(shape, group_.rows, slices + (sliced(shape.cols) ? group_.slice : 0));
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
  const TileGroup& group_;
  EdgeBatch batch_;
  std::vector<void*> pointers_;
  std::vector<MatrixView> values_, matrices_;
  std::vector<void*> matrix_slices_;
  std::vector<std::size_t> sliced_matrices_;
  std::vector<BoundStep> steps_;
  std::vector<std::size_t> first_streamed_, first_resident_, first_accumulator_;
};

// A slice of a fold that sums neighbours' rows, straight from where they lie.
struct PlainSum {
  std::size_t from = 0;  // streamed pointer
  void* to = nullptr;    // accumulator
  std::int64_t stride = 0;
  bool weighted = false;
};

template <class Visit>
void for_each_sum(const EdgeProgram& program, const TileGroup& group, Visit&& visit) {
  const std::vector<std::size_t> streamed = first_pointers(program.streamed);
  const std::vector<std::size_t> accumulators = first_pointers(program.accumulators);
  for (const EdgeProgram::FoldStep& fold : program.folds) {
    const auto load = std::find_if(program.loads.begin(), program.loads.end(),
                                   [&](const auto& l) { return l.value == fold.inputs[0]; });
    const std::size_t from = streamed[static_cast<std::size_t>(load->operand)];
    const auto accumulator = static_cast<std::size_t>(fold.accumulators[0]);
    const EdgeProgram::Shape& shape = program.accumulators[accumulator];
    const TensorLayout layout{group.rows, shape.cols, group.rows};
    const bool sliced = shape.cols == program.slice_local_cols;
    const std::int64_t begin = sliced ? group.slice : 0;
    const std::int64_t end = sliced ? group.slice + 1 : layout.slice_count();
    for (std::int64_t slice = begin; slice < end; ++slice) {
      const auto at = static_cast<std::size_t>(slice);
      visit(PlainSum{from + at, group.accumulators[accumulators[accumulator] + at],
                     layout.slice_stride(slice), fold.inputs.size() > 1});
    }
  }
}

template <class T>
void run_plain_sum(const EdgeProgram& program, const TileGroup& group) {
  std::vector<SumGroup::Entry> entries(group.entries.size());
  for_each_sum(program, group, [&](const PlainSum& sum) {
    for (std::size_t i = 0; i < entries.size(); ++i) {
      entries[i] = {group.entries[i].tile, group.entries[i].streamed[sum.from]};
    }
    gather_sum<T>(SumGroup{entries, sum.to, sum.stride, sum.weighted});
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
      for_each_sum(program, group, [&](const PlainSum& sum) {
        gather_sum<T>(SumEdges{batch, entry.streamed[sum.from], sum.to, sum.stride,
                               sum.weighted ? entry.tile.weights : nullptr});
      });
    }
  }
}

template <class T>
class CpuEdgeKernel final : public EdgeKernel {
 public:
  explicit CpuEdgeKernel(const EdgeProgram& program) : program_(program) {
    OOC_CHECK((is_plain_sum(program) && program.splits < 0) || program.batch_edges > 0);
  }
  void run(const TileGroup& group) const override {
    if (!is_plain_sum(program_)) return Run<T>(program_, group).run();
    program_.splits < 0 ? run_plain_sum<T>(program_, group) : run_train_sum<T>(program_, group);
  }

 private:
  EdgeProgram program_;
};

}  // namespace

std::unique_ptr<EdgeKernel> make_edge_kernel(const EdgeProgram& program) {
  OOC_CHECK(program.real == DType::kF32 || program.real == DType::kF64);
  if (program.real == DType::kF32) return std::make_unique<CpuEdgeKernel<float>>(program);
  return std::make_unique<CpuEdgeKernel<double>>(program);
}

}  // namespace ooc::cpu
