#include "sched/plan/cost/launches.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "sched/plan/dst_ranges.h"
#include "sched/plan/io_chunks.h"
#include "sched/plan/leaf_sums.h"
#include "sched/plan/passes/edge_binding.h"
#include "sched/plan/ring_order.h"
#include "sched/plan/span_windows.h"

namespace ooc {
namespace {

// The row-wise work of a pass.
class RowLaunches {
 public:
  RowLaunches(const EdgeLayout& edges, const Plan& plan, const Pass& pass)
      : edges_(edges), pass_(pass), steps_(std::ssize(pass.steps)) {
    std::set<DType> converted;
    for (const Scratch& scratch : pass.scratch) {
      for (const TensorUse& use : pass.uses) {
        if (use.value != scratch.value || use.tensor < 0) continue;
        const PlannedTensor& tensor = plan.tensors[static_cast<std::size_t>(use.tensor)];
        if (scratch.converted) {
          converted.insert(tensor.dtype);
        } else {
          kept_ = &tensor.kept;
        }
      }
    }
    conversions_ = std::ssize(converted);
    skipped_ = std::count(pass.skipped.begin(), pass.skipped.end(), true);
    sums_ = std::ssize(pass.reductions);
    groups_per_block_ = ceil_div(edges_.block_rows, pass.group_rows);
  }

  // Of a destination range's rows, in batches of steps.
  void add(std::int64_t first_row, std::int64_t end_row) {
    if (steps_ == 0) return;
    const std::int64_t batch = pass_.batch_steps * pass_.step_rows;
    for (std::int64_t row = first_row; row < end_row; row += batch) {
      add_batch(row, std::min(row + batch, end_row));
    }
  }

  // Each sum is folded to one: of two nodes of its tree at a time.
  std::int64_t count() const { return launches_ + sums_ * std::max<std::int64_t>(0, nodes_ - 1); }

 private:
  void add_batch(std::int64_t first_row, std::int64_t end_row) {
    std::int64_t first_leaf = -1, groups = 0;
    bool stored = false;
    const auto call = [&] {
      if (groups > 0) add_call(first_leaf, groups, stored);
      groups = 0;
    };
    for (std::int64_t row = first_row; row < end_row; row += pass_.step_rows) {
      const bool has = kept_ != nullptr && kept_->has(row);
      const std::int64_t end = std::min(row + pass_.step_rows, end_row);
      for (std::int64_t group = 0; row + group * pass_.group_rows < end; ++group) {
        if (groups == pass_.lanes || has != stored) call();
        if (groups == 0) first_leaf = leaf_of(row) + group;
        stored = has;
        ++groups;
      }
    }
    call();
  }

  std::int64_t leaf_of(std::int64_t row) const {
    return row / edges_.block_rows * groups_per_block_ + row % edges_.block_rows / pass_.group_rows;
  }

  void add_call(std::int64_t first_leaf, std::int64_t groups, bool stored) {
    launches_ += conversions_ + steps_ - (stored ? skipped_ : 0);
    for_each_leaf_sum(first_leaf, groups, [&](int, std::int64_t) {
      launches_ += sums_;
      ++nodes_;
    });
  }

  const EdgeLayout& edges_;
  const Pass& pass_;
  const std::int64_t steps_;
  const StoredRows* kept_ = nullptr;
  std::int64_t conversions_ = 0, skipped_ = 0, sums_ = 0, groups_per_block_ = 0;
  std::int64_t launches_ = 0, nodes_ = 0;
};

// Of slices of one width, each: full ones together, and a narrower last one.
std::int64_t gathers_of(const EdgeProgram& program, std::int64_t first_slice,
                        std::int64_t end_slice) {
  std::int64_t gathers = 0;
  for (const EdgeProgram::FoldStep& fold : program.folds) {
    const std::int64_t cols =
        program.accumulators[static_cast<std::size_t>(fold.accumulators[0])].cols;
    const TensorLayout layout{1, cols, 1};
    const bool sliced = cols == program.slice_local_cols;
    std::set<std::int64_t> strides;
    const std::int64_t begin = sliced ? first_slice : 0;
    const std::int64_t end = sliced ? end_slice : layout.slice_count();
    for (std::int64_t slice = begin; slice < end; ++slice) {
      strides.insert(layout.slice_stride(slice));
    }
    gathers += std::ssize(strides);
  }
  return gathers;
}

// Times that a window's edges are indexed.
std::int64_t indexes_of(const EdgeTable& table, const EdgeLayout& edges, Direction direction,
                        const SpanWindow& window, std::int64_t first_span,
                        std::int64_t scratch_bytes) {
  const std::int64_t rows = (window.end_block - window.first_block) * edges.block_rows;
  const auto bytes_of = [&](std::int64_t span) {
    return table.chunk_bytes(direction, span * edges.panel_count() + window.panel);
  };
  const std::int64_t end_span = first_span + window.end_span - window.first_span;
  std::int64_t count = 0;
  for (std::int64_t span = first_span; span < end_span; ++count) {
    span = end_of_index(edges.data, rows, scratch_bytes, span, end_span, bytes_of);
  }
  return count;
}

// Of spans, on the device of these blocks.
std::vector<std::int64_t> order_of(const PassBuilder& builder, const Plan& plan, const Pass& pass,
                                   const BlockRange& own) {
  if (plan.ring_loaders == 0) return {};
  const EdgeLayout& layout = builder.graph().edges;
  std::int64_t index = 0;
  while (plan.devices[static_cast<std::size_t>(index)].own.first != own.first) ++index;
  return ring_spans({std::ssize(plan.devices), plan.ring_loaders}, index, layout.span_count(),
                    ring_item_spans(layout, pass.uses, plan.tensors));
}

}  // namespace

std::int64_t launches_of(const PassBuilder& builder, const EdgeTable& edges, const Plan& plan,
                         const StageShape& stage, const Pass& pass, const BlockRange& own,
                         const PassMemory& memory) {
  constexpr std::int64_t kOfIndex = 4;
  if (!builder.options().compute.indexes_edges || pass.lanes == 0) return 0;
  const EdgeLayout& layout = builder.graph().edges;
  RowLaunches rows(layout, plan, pass);
  const auto add_rows = [&](std::int64_t first_block, std::int64_t end_block) {
    rows.add(first_block * layout.block_rows,
             std::min(end_block * layout.block_rows, layout.vertices));
  };
  if (pass.kind == PassKind::kRow) {
    add_rows(own.first, own.end);
    return rows.count();
  }
  const EdgeProgram program =
      bind_edges(builder.program(stage.section), pass.propagation, 1, pass.slice_local_cols)
          .program;
  const SpanWindows windows(layout, pass.group_blocks, pass.span_group,
                            order_of(builder, plan, pass, own));
  std::int64_t launches = 0;
  for_each_dst_range(
      pass, own, false,
      [&](std::int64_t first_slice, std::int64_t end_slice, std::int64_t first, std::int64_t end) {
        const std::int64_t gathers = gathers_of(program, first_slice, end_slice);
        windows.for_each(first, end, [&](const SpanWindow& window) {
          launches += (kOfIndex + gathers) * indexes_of(edges, layout, stage.edge_file, window,
                                                        windows.span_at(window.first_span),
                                                        memory.worker_scratch.bytes);
          return true;
        });
        add_rows(first, end);
        return true;
      });
  return launches + rows.count();
}

}  // namespace ooc
