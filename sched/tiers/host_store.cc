#include "sched/tiers/host_store.h"

#include <utility>

#include "kernels/device/host_buffer.h"
#include "storage/base/errors.h"

namespace ooc {

class HostCache::Tensor final : public TensorStore {
 public:
  Tensor(HostCache& cache, int index, TensorStore* stored)
      : cache_(cache),
        index_(index),
        planned_(cache.plan_.tensors[static_cast<std::size_t>(index)]),
        stored_from_block_(
            planned_.input ? 0
                           : cache.plan_.host->stored_from_block[static_cast<std::size_t>(index)]),
        stored_(stored) {
    OOC_CHECK(stored != nullptr || stored_from_block_ >= planned_.layout.block_count());
  }

  DType dtype() const override { return planned_.dtype; }
  const TensorLayout& layout() const override { return planned_.layout; }
  std::int64_t unit_blocks() const override { return planned_.unit_blocks; }

  void read(std::int64_t unit, std::int64_t slice, std::byte* data,
            BlockCompletion done) const override {
    HostItem item = this->item(unit, slice);
    if (is_stored(unit)) {
      item.read = [stored = stored_, unit, slice](std::byte* to, BlockCompletion came) {
        stored->read(unit, slice, to, std::move(came));
      };
      if (stored_->needs_settling(unit, slice)) {
        item.settle = [stored = stored_, unit, slice](std::byte* rows) {
          stored->settle(unit, slice, rows);
        };
      }
    }
    cache_.transfers_.to_device(std::move(item), cache_.place(index_, unit, slice), data,
                                std::move(done));
  }
  void write(std::int64_t unit, std::int64_t slice, std::byte* data, std::int64_t,
             BlockCompletion done) override {
    HostItem item = this->item(unit, slice);
    if (is_stored(unit)) {
      item.write = [stored = stored_, unit, slice](std::byte* from, BlockCompletion went) {
        stored->write(unit, slice, from, 0, std::move(went));
      };
    }
    cache_.transfers_.from_device(std::move(item), cache_.place(index_, unit, slice), data,
                                  std::move(done));
  }
  bool needs_settling(std::int64_t, std::int64_t) const override { return false; }
  void settle(std::int64_t, std::int64_t, std::byte*) const override {}

 private:
  HostItem item(std::int64_t unit, std::int64_t slice) const {
    return {static_cast<std::size_t>(unit_payload(planned_, unit, slice)), {}, {}, {}};
  }
  bool is_stored(std::int64_t unit) const {
    return unit * planned_.unit_blocks >= stored_from_block_;
  }

  HostCache& cache_;
  int index_;
  const PlannedTensor& planned_;
  std::int64_t stored_from_block_;
  TensorStore* stored_;
};

class HostCache::Edges final : public EdgeSource {
 public:
  Edges(HostCache& cache, BlockIo& io, const EdgeFile& file, Direction direction)
      : cache_(cache), stored_(io, file) {
    for (const EdgePiece& piece : cache.plan_.host->edge_pieces) {
      if (piece.direction != direction) continue;
      OOC_CHECK(states_.empty() && piece.first_chunk <= piece.end_chunk);
      first_chunk_ = piece.first_chunk;
      states_.resize(static_cast<std::size_t>(piece.end_chunk - piece.first_chunk),
                     Residency::State::kAbsent);
      std::byte* data = cache.arena_->data() + piece.memory.offset;
      for (std::int64_t chunk = piece.first_chunk; chunk < piece.end_chunk; ++chunk) {
        places_.push_back(data);
        data += io_aligned(bytes(chunk));
      }
    }
  }

  const EdgeFile& file() const override { return stored_.file(); }
  void read(std::int64_t chunk, std::byte* data, BlockCompletion done) override {
    HostItem item;
    item.bytes = bytes(chunk);
    item.read = [this, chunk](std::byte* to, BlockCompletion came) {
      stored_.read(chunk, to, std::move(came));
    };
    if (file().file().needs_verify(static_cast<std::uint64_t>(chunk))) {
      item.settle = [this, chunk, size = item.bytes](std::byte* read) {
        stored_.tiles(chunk, {read, size});
      };
    }
    cache_.transfers_.to_device(std::move(item), place(chunk), data, std::move(done));
  }
  std::vector<PanelTile> tiles(std::int64_t chunk,
                               std::span<const std::byte> payload) const override {
    return file().checked_tiles(chunk, payload);
  }

 private:
  std::size_t bytes(std::int64_t chunk) const {
    return file().file().entry(static_cast<std::uint64_t>(chunk)).bytes;
  }
  HostPlace place(std::int64_t chunk) {
    const auto at = static_cast<std::size_t>(chunk - first_chunk_);
    if (chunk < first_chunk_ || at >= places_.size()) return {};
    return {places_[at], &states_[at]};
  }

  HostCache& cache_;
  FileEdges stored_;
  std::int64_t first_chunk_ = 0;
  std::vector<std::byte*> places_;  // from first_chunk_ on, as the states
  std::vector<Residency::State> states_;
};

namespace {

std::int64_t slot_bytes(const HostTier& host) {
  const std::int64_t bytes = host.staging_slots > 0 ? host.staging.bytes / host.staging_slots : 0;
  OOC_CHECK(bytes % static_cast<std::int64_t>(kIoAlignment) == 0);
  return bytes;
}

}  // namespace

HostCache::HostCache(Backend& backend, Driver& driver, const Plan& plan)
    : plan_(plan),
      arena_(make_host_buffer(static_cast<std::size_t>(plan.host->arena_bytes), "--host-memory")),
      residency_(plan, plan.host->pieces, arena_->data()),
      staging_(arena_->data() + plan.host->staging.offset, plan.host->staging_slots,
               slot_bytes(*plan.host)),
      link_(backend),
      transfers_(driver, link_, staging_) {
  OOC_CHECK(plan.host->stored_from_block.size() == plan.tensors.size());
}

std::unique_ptr<TensorStore> HostCache::tensor(int index, TensorStore* stored) {
  return std::make_unique<Tensor>(*this, index, stored);
}

std::unique_ptr<EdgeSource> HostCache::edges(BlockIo& io, const EdgeFile& file,
                                             Direction direction) {
  return std::make_unique<Edges>(*this, io, file, direction);
}

void HostCache::begin_pass(int pass) {
  pass_ = pass;
  residency_.begin_pass(pass);
}

void HostCache::forget() {
  OOC_CHECK(staging_.idle());
  residency_.forget();
}

HostPlace HostCache::place(int tensor, std::int64_t unit, std::int64_t slice) {
  const PlannedTensor& planned = plan_.tensors[static_cast<std::size_t>(tensor)];
  const std::int64_t block = unit * planned.unit_blocks;
  const int piece = residency_.find(tensor, block, pass_);
  if (piece < 0) return {};
  return {residency_.place(piece).at(planned, block * planned.layout.block_rows, slice),
          &residency_.state_at(piece, unit, slice)};
}

RowsPlace HostCache::find(int tensor, std::int64_t unit, int pass) {
  const PlannedTensor& planned = plan_.tensors[static_cast<std::size_t>(tensor)];
  const int piece = residency_.find(tensor, unit * planned.unit_blocks, pass);
  if (piece < 0) return {};
  for (std::int64_t slice = 0; slice < planned.layout.slice_count(); ++slice) {
    if (residency_.state(piece, unit, slice) != Residency::State::kThere) return {};
  }
  return residency_.place(piece);
}

}  // namespace ooc
