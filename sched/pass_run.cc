#include "sched/pass_run.h"

#include <algorithm>
#include <utility>

#include "storage/errors.h"

namespace ooc {

void* SectionState::matrix(ValueId id) const {
  if (value(id).kind != ValueKind::kParameter) return reductions.at(id)->result().data();
  void* parameter = parameters[static_cast<std::size_t>(id)];
  OOC_CHECK(parameter != nullptr);
  return parameter;
}

PassRun::PassRun(PassContext& context, SectionState& section, std::size_t pass,
                 const RunState& state, const std::atomic<bool>* stop)
    : context_(context),
      section_(section),
      bound_(section.passes[pass]),
      pass_(*bound_.pass),
      index_(section.section->first_pass + static_cast<int>(pass)),
      state_(state),
      stop_(stop) {
  end_block_ = context.edges.block_count();
  open_uses();
}

PassRun::~PassRun() { context_.driver.drain(); }

bool PassRun::run() {
  context_.residency.begin_pass(index_);
  if (context_.host != nullptr) context_.host->begin_pass(index_);
  const std::int64_t blocks = context_.edges.block_count();
  if (pass_.kind == PassKind::kRow) {
    if (!run_rows()) return false;
  } else {
    const std::int64_t slices =
        std::max<std::int64_t>(ceil_div(pass_.slice_local_cols, kSliceWidth), 1);
    const std::int64_t at_once = pass_.slices_at_once > 0 ? pass_.slices_at_once : slices;
    for (first_slice_ = 0; first_slice_ < slices; first_slice_ = end_slice_) {
      end_slice_ = std::min(first_slice_ + at_once, slices);
      for (first_block_ = 0; first_block_ < blocks; first_block_ = end_block_, ++sweep_) {
        end_block_ = std::min(first_block_ + pass_.part_blocks, blocks);
        if (!propagate_part() || !run_rows()) return false;
      }
    }
  }
  return true;
}

std::vector<std::byte*> PassRun::slots(const Region& memory, std::int64_t count) const {
  std::vector<std::byte*> slots;
  for (std::int64_t slot = 0; slot < count; ++slot) {
    slots.push_back(context_.arena + memory.offset + slot * (memory.bytes / count));
  }
  return slots;
}

void PassRun::open_uses() {
  uses_.resize(pass_.uses.size());
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    Use& use = uses_[i];
    const TensorUse& planned = pass_.uses[i];
    use.planned = &planned;
    use.access = {nullptr,
                  planned.tensor,
                  nullptr,
                  &context_.residency,
                  index_,
                  &context_.bytes_in,
                  &context_.bytes_out};
    if (planned.tensor >= 0) {
      use.access.tensor = &context_.plan.tensors[static_cast<std::size_t>(planned.tensor)];
      use.access.store = context_.stores[static_cast<std::size_t>(planned.tensor)];
    } else {
      use.own = part_tensor(context_.edges, section_.value(planned.value));
      use.access.tensor = &use.own;
    }
    switch (planned.role) {
      case UseRole::kStreamed:
        open_streamed(use);
        break;
      case UseRole::kRows:
        open_rows(use);
        break;
      case UseRole::kOutput:
        use.writer = std::make_unique<RowsWriter>(context_.driver, use.access,
                                                  slots(planned.memory, planned.slots));
        break;
      case UseRole::kAccumulator:
        use.writer = std::make_unique<RowsWriter>(context_.driver, use.access);
        break;
      case UseRole::kResident:
        break;  // part by part
    }
  }
  if (pass_.kind == PassKind::kPropagate) open_edges();
}

namespace {

// Calls visit(first_slice, end_slice, first_block, end_block) for the parts in order.
template <class Visit>
void for_each_part(const Pass& pass, std::int64_t blocks, Visit&& visit) {
  if (pass.kind == PassKind::kRow) return visit(0, 1, 0, blocks);
  const std::int64_t slices =
      std::max<std::int64_t>(ceil_div(pass.slice_local_cols, kSliceWidth), 1);
  const std::int64_t at_once = pass.slices_at_once > 0 ? pass.slices_at_once : slices;
  for (std::int64_t slice = 0; slice < slices; slice += at_once) {
    for (std::int64_t block = 0; block < blocks; block += pass.part_blocks) {
      visit(slice, std::min(slice + at_once, slices), block,
            std::min(block + pass.part_blocks, blocks));
    }
  }
}

}  // namespace

bool PassRun::is_sliced(const Use& use) const {
  return pass_.slice_local_cols > 0 && use.access.tensor->layout.cols == pass_.slice_local_cols;
}

std::int64_t PassRun::slice_begin(const Use& use) const {
  return is_sliced(use) ? first_slice_ : 0;
}

std::int64_t PassRun::slice_end(const Use& use) const {
  return is_sliced(use) ? end_slice_ : use.access.tensor->layout.slice_count();
}

void PassRun::open_streamed(Use& use) {
  const PlannedTensor& tensor = *use.access.tensor;
  const std::int64_t blocks = tensor.layout.block_count();
  use.item_blocks =
      std::max(tensor.unit_blocks, context_.edges.span_rows / tensor.layout.block_rows);
  RowsItems items{use.item_blocks};
  for_each_part(
      pass_, context_.edges.block_count(),
      [&](std::int64_t first, std::int64_t end, std::int64_t, std::int64_t) {
        const bool sliced = is_sliced(use);
        items.add({0, blocks, sliced ? first : 0, sliced ? end : tensor.layout.slice_count()});
      });
  auto loader = std::make_unique<RowsLoader>(use.access, std::move(items));
  use.loader = loader.get();
  use.stream = std::make_unique<ItemStream>(context_.driver, std::move(loader),
                                            slots(use.planned->memory, use.planned->slots));
}

void PassRun::open_rows(Use& use) {
  const PlannedTensor& tensor = *use.access.tensor;
  const std::int64_t blocks = tensor.layout.block_count();
  const std::int64_t a_block = blocks_in(context_.edges, tensor);
  use.item_blocks = tensor.unit_blocks;
  RowsItems items{use.item_blocks, true};
  for_each_part(
      pass_, context_.edges.block_count(),
      [&](std::int64_t, std::int64_t, std::int64_t first, std::int64_t end) {
        const std::int64_t unit = use.item_blocks;
        items.add({first * a_block / unit * unit, std::min(round_up(end * a_block, unit), blocks),
                   0, tensor.layout.slice_count()});
      });
  auto loader = std::make_unique<RowsLoader>(use.access, std::move(items));
  use.loader = loader.get();
  use.stream = std::make_unique<ItemStream>(context_.driver, std::move(loader),
                                            slots(use.planned->memory, use.planned->slots));
}

void PassRun::open_edges() {
  const EdgeLayout& edges = context_.edges;
  edge_store_ = pass_.propagation.direction == Direction::kIn ? &context_.in : &context_.out;
  std::vector<EdgeItem> items;
  for_each_part(pass_, edges.block_count(),
                [&](std::int64_t, std::int64_t, std::int64_t first, std::int64_t end) {
                  const std::int64_t end_panel = ceil_div(end, edges.panel_blocks);
                  for (std::int64_t span = 0; span < edges.span_count(); span += pass_.span_group) {
                    for (std::int64_t panel = first / edges.panel_blocks; panel < end_panel;
                         ++panel) {
                      for (std::int64_t s = span;
                           s < std::min(span + pass_.span_group, edges.span_count()); ++s) {
                        items.push_back({s, panel});
                      }
                    }
                  }
                });
  auto loader = std::make_unique<EdgeLoader>(*edge_store_, std::move(items), context_.bytes_in);
  edge_loader_ = loader.get();
  edges_ = std::make_unique<ItemStream>(context_.driver, std::move(loader),
                                        slots(pass_.edge_ring, pass_.edge_slots));
  partials_.resize(bound_.edges.reductions.size());
}

// Of the part's rows that no piece holds; pieces hold the first ones.
RowsPlace PassRun::part_place(const Use& use) const {
  const PlannedTensor& tensor = *use.access.tensor;
  const std::int64_t unit = tensor.unit_blocks, blocks = tensor.layout.block_count();
  const std::int64_t a_block = blocks_in(context_.edges, tensor);
  const std::int64_t end = std::min(round_up(end_block_ * a_block, unit), blocks);
  std::int64_t first = first_block_ * a_block / unit * unit;
  while (first < end && use.access.piece(first) >= 0) first += unit;
  return {context_.arena + use.planned->memory.offset, first, std::max(first, end),
          slice_begin(use)};
}

bool PassRun::wait(std::unique_lock<std::mutex>& lock, WaitCause cause,
                   const std::function<bool()>& ready) {
  return context_.driver.wait(
      lock, cause, stop_, [this] { advance(); }, ready);
}

bool PassRun::wait_for_room(std::unique_lock<std::mutex>& lock) {
  return context_.driver.wait_for_room(lock, tasks_at_once(context_.driver.workers()), stop_,
                                       [this] { advance(); });
}

void PassRun::advance() {
  if (edges_) edges_->advance();
  for (Use& use : uses_) {
    if (use.stream) use.stream->advance();
  }
}

}  // namespace ooc
