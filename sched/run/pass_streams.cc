#include "sched/run/pass_streams.h"

#include <algorithm>
#include <utility>

#include "sched/devices/ring_loader.h"
#include "sched/plan/io_chunks.h"
#include "storage/base/errors.h"

namespace ooc {

PassStreams::PassStreams(const PassInfo& info, const SpanWindows& windows)
    : info_(info), windows_(windows) {
  uses_.resize(info.pass.uses.size());
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    PassUse& use = uses_[i];
    const TensorUse& planned = info.pass.uses[i];
    PassContext& context = info.context;
    use.planned = &planned;
    use.memory = &info.memory.uses[i];
    use.access = {nullptr,    planned.tensor, nullptr,          &context.residency,
                  info.index, &context.moved, &context.leaving, &context.hazards};
    if (planned.tensor >= 0) {
      use.access.tensor = &context.plan.tensors[static_cast<std::size_t>(planned.tensor)];
      use.access.store = context.stores[static_cast<std::size_t>(planned.tensor)];
      use.access.stored_from_block =
          context.device.stored_from_block[static_cast<std::size_t>(planned.tensor)];
      use.access.in_ranges = planned.role != UseRole::kStreamed || context.plan.devices.size() == 1;
      if (use.access.store != nullptr) {
        use.access.mapped = {use.access.store->mapped(), 0, use.tensor().layout.block_count(), 0};
      }
    } else {
      use.own = dst_range_tensor(context.edges, info.section.value(planned.value));
      use.access.tensor = &use.own;
    }
    open(use);
  }
  if (info.pass.kind == PassKind::kPropagate) open_edges();
}

void PassStreams::open(PassUse& use) {
  switch (use.role()) {
    case UseRole::kStreamed:
      return open_streamed(use);
    case UseRole::kRows:
      return open_rows(use);
    case UseRole::kOutput:
      use.writer = std::make_shared<RowsWriter>(info_.context.driver, use.access, row_slots(use));
      return;
    case UseRole::kAccumulator:
    case UseRole::kResident:
      return;  // by destination ranges
  }
}

void PassStreams::open_streamed(PassUse& use) {
  const PassContext& context = info_.context;
  const std::int64_t blocks = use.tensor().layout.block_count();
  use.item_blocks = streamed_blocks(context.edges, use.tensor());
  RowsItems items{use.item_blocks, order_of_items(use)};
  for (std::size_t place = 0; place < items.order.size(); ++place) {
    use.places.resize(items.order.size());
    use.places[static_cast<std::size_t>(items.order[place])] = static_cast<std::int64_t>(place);
  }
  for_each_dst_range(info_.pass, context.device.own, context.ring != nullptr,
                     [&](std::int64_t first, std::int64_t end, std::int64_t, std::int64_t) {
                       const bool sliced = is_sliced(use);
                       items.add({0, blocks, sliced ? first : 0,
                                  sliced ? end : use.tensor().layout.slice_count()});
                       return true;
                     });
  std::unique_ptr<RowsLoader> loader;
  if (context.ring == nullptr) {
    loader = std::make_unique<RowsLoader>(use.access, std::move(items));
  } else {
    const std::int64_t ring_items =
        ring_item_spans(context.edges, info_.pass.uses, context.plan.tensors) / item_spans(use);
    loader = std::make_unique<RingLoader>(use.access, items, *context.ring, context.index,
                                          index_of(use), ring_items);
  }
  use.loader = loader.get();
  use.stream =
      std::make_unique<ItemStream>(info_.context.driver, std::move(loader), slots(*use.memory));
}

std::int64_t PassStreams::item_spans(const PassUse& use) const {
  return use.item_rows() / info_.context.edges.span_rows;
}

// Of a sweep, as the device takes its spans; empty: as they are in the graph.
std::vector<std::int64_t> PassStreams::order_of_items(const PassUse& use) const {
  std::vector<std::int64_t> order;
  if (info_.context.ring == nullptr) return order;
  for (std::int64_t place = 0; place < info_.context.edges.span_count(); ++place) {
    const std::int64_t span = windows_.span_at(place);
    if (span % item_spans(use) == 0) order.push_back(span / item_spans(use));
  }
  return order;
}

std::int64_t PassStreams::item_of_span(const PassUse& use, std::int64_t sweep,
                                       std::int64_t span) const {
  const std::int64_t items = ceil_div(use.tensor().layout.block_count(), use.item_blocks);
  const std::int64_t item = span / item_spans(use);
  return sweep * items + (use.places.empty() ? item : use.places[static_cast<std::size_t>(item)]);
}

bool PassStreams::all_passed_on() const {
  return info_.context.ring == nullptr ||
         std::all_of(uses_.begin(), uses_.end(), [](const PassUse& use) {
           return use.role() != UseRole::kStreamed || use.stream->is_done();
         });
}

void PassStreams::skip_sweep(std::int64_t sweep) {
  for (PassUse& use : uses_) {
    if (use.role() != UseRole::kStreamed) continue;
    const std::int64_t items = ceil_div(use.tensor().layout.block_count(), use.item_blocks);
    for (std::int64_t item = 0; item < items; ++item) use.stream->hold(sweep * items + item, 0);
  }
}

void PassStreams::open_rows(PassUse& use) {
  const PlannedTensor& tensor = use.tensor();
  const EdgeLayout& edges = info_.context.edges;
  const std::int64_t io_chunk = tensor.io_chunk_blocks;
  use.item_blocks = io_chunk;
  RowsItems items{io_chunk};
  for_each_dst_range(info_.pass, info_.context.device.own, false,
                     [&](std::int64_t, std::int64_t, std::int64_t first, std::int64_t end) {
                       const std::int64_t row = tensor.kept.index(first * edges.block_rows);
                       const std::int64_t end_row =
                           tensor.kept.index(std::min(end * edges.block_rows, edges.vertices));
                       const std::int64_t end_io_chunk = ceil_div(end_row, use.item_rows());
                       items.add({row / use.item_rows() * io_chunk,
                                  std::min(end_io_chunk * io_chunk, tensor.layout.block_count()), 0,
                                  tensor.layout.slice_count()});
                       return true;
                     });
  auto loader = std::make_unique<RowsLoader>(use.access, std::move(items));
  use.loader = loader.get();
  const std::int64_t at_once =
      ceil_div(info_.pass.batch_steps * info_.pass.step_rows, use.item_rows());
  use.stream = std::make_unique<ItemStream>(info_.context.driver, std::move(loader), row_slots(use),
                                            at_once);
}

void PassStreams::open_edges() {
  PassContext& context = info_.context;
  std::vector<EdgeItem> items;
  for_each_dst_range(info_.pass, info_.context.device.own, false,
                     [&](std::int64_t, std::int64_t, std::int64_t first, std::int64_t end) {
                       return windows_.for_each(first, end, [&](const SpanWindow& window) {
                         for (std::int64_t span = window.new_span; span < window.end_span; ++span) {
                           items.push_back({windows_.span_at(span), window.panel});
                         }
                         return true;
                       });
                     });
  auto loader = std::make_unique<EdgeLoader>(info_.edge_store(), std::move(items), context.moved.in,
                                             context.backend.shape().host_tiles);
  edge_loader_ = loader.get();
  edges_ =
      std::make_unique<ItemStream>(context.driver, std::move(loader), slots(info_.memory.edges));
}

Slots PassStreams::slots(const UseMemory& memory) const {
  return {{info_.context.arena + memory.offset, static_cast<std::size_t>(memory.bytes)},
          memory.slots,
          info_.context.hazards};
}

// Of kRows and kOutput: the plan counts one a slice, and an item takes those of all.
Slots PassStreams::row_slots(const PassUse& use) const {
  const std::int64_t slices = use.tensor().layout.slice_count();
  OOC_CHECK(use.memory->slots % slices == 0);
  UseMemory memory = *use.memory;
  memory.slots /= slices;
  return slots(memory);
}

const PassUse& PassStreams::use_of(ValueId value, UseRole role) const {
  const auto use = std::find_if(uses_.begin(), uses_.end(), [&](const PassUse& candidate) {
    return candidate.role() == role && candidate.planned->value == value;
  });
  OOC_CHECK(use != uses_.end());
  return *use;
}

// Reads are asked for an item a stream at a time, and storage does them in turn: what is needed
// together comes together. What edges read comes before what steps do.
void PassStreams::advance() {
  for (const bool rows : {false, true}) {
    for (bool more = true; more;) {
      more = !rows && edges_ && edges_->advance();
      for (PassUse& use : uses_) {
        if (use.stream && rows == (use.role() == UseRole::kRows)) more |= use.stream->advance();
      }
      if (rows || loading_ == nullptr) continue;
      for (DstRange::Rows& resident : loading_->rows) {
        if (resident.stream) more |= resident.stream->advance();
      }
    }
  }
}

void PassStreams::place_dst_range(DstRange& dst_range) {
  dst_range.rows.resize(uses_.size());
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    const PassUse& use = uses_[i];
    if (use.role() != UseRole::kAccumulator && use.role() != UseRole::kResident) continue;
    DstRange::Rows& rows = dst_range.rows[i];
    rows.place = dst_range_place(dst_range, use);
    if (use.role() == UseRole::kResident) continue;
    rows.writer = std::make_shared<RowsWriter>(info_.context.driver, use.access, rows.place,
                                               slice_end(dst_range, use));
  }
}

void PassStreams::load_resident(DstRange& dst_range) {
  const EdgeLayout& edges = info_.context.edges;
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    const PassUse& use = uses_[i];
    if (use.role() != UseRole::kResident) continue;
    const PlannedTensor& tensor = use.tensor();
    const std::int64_t io_chunk = tensor.io_chunk_blocks, a_block = blocks_in(edges, tensor);
    const std::int64_t end =
        std::min(round_up(dst_range.end_block * a_block, io_chunk), tensor.layout.block_count());
    RowsItems items{io_chunk};
    items.add({dst_range.first_block * a_block / io_chunk * io_chunk, end,
               slice_begin(dst_range, use), slice_end(dst_range, use)});
    auto loader =
        std::make_unique<RowsLoader>(use.access, std::move(items), dst_range.rows[i].place);
    dst_range.rows[i].stream =
        std::make_unique<ItemStream>(info_.context.driver, std::move(loader), Slots());
  }
  loading_ = &dst_range;
}

// Of the destination range's rows that no resident range holds; ranges hold the first ones.
RowsPlace PassStreams::dst_range_place(const DstRange& dst_range, const PassUse& use) const {
  const PlannedTensor& tensor = use.tensor();
  const std::int64_t io_chunk = tensor.io_chunk_blocks, blocks = tensor.layout.block_count();
  const std::int64_t a_block = blocks_in(info_.context.edges, tensor);
  const std::int64_t end = std::min(round_up(dst_range.end_block * a_block, io_chunk), blocks);
  std::int64_t first = dst_range.first_block * a_block / io_chunk * io_chunk;
  while (first < end && use.access.range(first) >= 0) first += io_chunk;
  const UseMemory& memory = *use.memory;
  const std::int64_t at_once = info_.pass.dst_ranges_at_once;
  const std::int64_t place = dst_range.number % at_once;
  return {info_.context.arena + memory.offset + place * (memory.bytes / at_once), first,
          std::max(first, end), slice_begin(dst_range, use)};
}

bool PassStreams::is_sliced(const PassUse& use) const {
  return info_.pass.slice_local_cols > 0 && use.tensor().layout.cols == info_.pass.slice_local_cols;
}

std::int64_t PassStreams::slice_begin(const DstRange& dst_range, const PassUse& use) const {
  return is_sliced(use) ? dst_range.first_slice : 0;
}

std::int64_t PassStreams::slice_end(const DstRange& dst_range, const PassUse& use) const {
  return is_sliced(use) ? dst_range.end_slice : use.tensor().layout.slice_count();
}

std::int64_t PassStreams::rows_item(const PassUse& use, std::int64_t first_row,
                                    std::int64_t row) const {
  const StoredRows& kept = use.tensor().kept;
  const std::int64_t rows = use.item_rows();
  return use.dst_range_items + kept.index(row) / rows - kept.index(first_row) / rows;
}

SlicedRows PassStreams::rows_at(const DstRange& dst_range, std::size_t use,
                                std::int64_t row) const {
  const PassUse& of = uses_[use];
  return sliced_rows(slice_begin(dst_range, of), slice_end(dst_range, of),
                     of.tensor().layout.slice_count(),
                     [&](std::int64_t slice) { return row_address(dst_range, use, row, slice); });
}

SlicedRows PassStreams::span_rows(const DstRange& dst_range, const PassUse& use, std::int64_t item,
                                  std::int64_t span) const {
  const RowsPlace place = use.loader->rows(item, use.stream->data(item));
  const std::int64_t row = span * info_.context.edges.span_rows;
  return sliced_rows(slice_begin(dst_range, use), slice_end(dst_range, use),
                     use.tensor().layout.slice_count(),
                     [&](std::int64_t slice) { return place.at(use.tensor(), row, slice); });
}

std::byte* PassStreams::row_address(const DstRange& dst_range, std::size_t index, std::int64_t row,
                                    std::int64_t slice) const {
  const PassUse& use = uses_[index];
  const PlannedTensor& tensor = use.tensor();
  switch (use.role()) {
    case UseRole::kRows: {
      const std::int64_t first = dst_range.first_block * info_.context.edges.block_rows;
      const std::int64_t item = rows_item(use, first, row);
      return use.loader->rows(item, use.stream->data(item))
          .at(tensor, tensor.kept.index(row), slice);
    }
    case UseRole::kResident: {
      if (use.access.is_mapped()) return use.access.mapped.at(tensor, row, slice);
      const int range = use.access.range(row / tensor.layout.block_rows);
      const RowsPlace place =
          range >= 0 ? info_.context.residency.place(range) : dst_range.rows[index].place;
      return place.at(tensor, row, slice);
    }
    case UseRole::kOutput:
      return use.writer->at(tensor.kept.index(row), slice);
    case UseRole::kAccumulator:
      return dst_range.rows[index].writer->at(row, slice);
    case UseRole::kStreamed:
      break;
  }
  OOC_CHECK(!"streamed rows are found by their span");
  return nullptr;
}

}  // namespace ooc
