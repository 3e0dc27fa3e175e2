#include "sched/tiers/host_store.h"

#include <utility>

#include "sched/plan/io_chunks.h"
#include "storage/base/errors.h"

namespace ooc {

class HostStore::Tensor final : public TensorStore {
 public:
  Tensor(HostStore& cache, int index, TensorStore* stored)
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
  std::int64_t io_chunk_blocks() const override { return planned_.io_chunk_blocks; }

  void read(std::int64_t io_chunk, std::int64_t slice, std::byte* data,
            BlockCompletion done) const override {
    HostItem item = this->item(io_chunk, slice);
    if (is_stored(io_chunk)) {
      item.read = [stored = stored_, io_chunk, slice](std::byte* to, BlockCompletion loaded) {
        stored->read(io_chunk, slice, to, std::move(loaded));
      };
      if (stored_->needs_decoding(io_chunk, slice)) {
        item.verify_and_decode = [stored = stored_, io_chunk, slice](std::byte* rows) {
          stored->verify_and_decode(io_chunk, slice, rows);
        };
      }
    }
    cache_.transfers_.to_device(std::move(item), cache_.place(index_, io_chunk, slice), data,
                                std::move(done));
  }
  void write(std::int64_t io_chunk, std::int64_t slice, std::byte* data, std::int64_t,
             BlockCompletion done) override {
    HostItem item = this->item(io_chunk, slice);
    if (is_stored(io_chunk)) {
      item.write = [stored = stored_, io_chunk, slice](std::byte* from, BlockCompletion went) {
        stored->write(io_chunk, slice, from, 0, std::move(went));
      };
    }
    cache_.transfers_.from_device(std::move(item), cache_.place(index_, io_chunk, slice), data,
                                  std::move(done));
  }
  bool needs_decoding(std::int64_t, std::int64_t) const override { return false; }
  void verify_and_decode(std::int64_t, std::int64_t, std::byte*) const override {}

 private:
  HostItem item(std::int64_t io_chunk, std::int64_t slice) const {
    return {static_cast<std::size_t>(io_chunk_payload(planned_, io_chunk, slice)), {}, {}, {}};
  }
  bool is_stored(std::int64_t io_chunk) const {
    return io_chunk * planned_.io_chunk_blocks >= stored_from_block_;
  }

  HostStore& cache_;
  int index_;
  const PlannedTensor& planned_;
  std::int64_t stored_from_block_;
  TensorStore* stored_;
};

class HostStore::Edges final : public EdgeSource {
 public:
  Edges(HostStore& cache, BlockIo& io, const EdgeFile& file, Direction direction)
      : cache_(cache), stored_(io, file) {
    for (const EdgeRange& range : cache.plan_.host->edge_ranges) {
      if (range.direction != direction) continue;
      OOC_CHECK(states_.empty() && range.first_chunk <= range.end_chunk);
      first_chunk_ = range.first_chunk;
      states_.resize(static_cast<std::size_t>(range.end_chunk - range.first_chunk),
                     Presence::kAbsent);
      std::byte* data = cache.arena_->data() + range.memory.offset;
      for (std::int64_t chunk = range.first_chunk; chunk < range.end_chunk; ++chunk) {
        places_.push_back(data);
        data += io_aligned(bytes(chunk));
      }
    }
  }

  const EdgeFile& file() const override { return stored_.file(); }
  void read(std::int64_t chunk, std::byte* data, BlockCompletion done) override {
    HostItem item;
    item.bytes = bytes(chunk);
    item.read = [this, chunk](std::byte* to, BlockCompletion loaded) {
      stored_.read(chunk, to, std::move(loaded));
    };
    if (file().file().needs_verify(static_cast<std::uint64_t>(chunk))) {
      item.verify_and_decode = [this, chunk, size = item.bytes](std::byte* read) {
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

  HostStore& cache_;
  FileEdges stored_;
  std::int64_t first_chunk_ = 0;
  std::vector<std::byte*> places_;  // from first_chunk_ on, as the states
  std::vector<Presence> states_;
};

namespace {

std::int64_t slot_bytes(const HostTier& host) {
  const std::int64_t bytes = host.staging_slots > 0 ? host.staging.bytes / host.staging_slots : 0;
  OOC_CHECK(bytes % static_cast<std::int64_t>(kIoAlignment) == 0);
  return bytes;
}

}  // namespace

HostStore::HostStore(Backend& backend, Driver& driver, const Plan& plan)
    : plan_(plan),
      arena_(backend.allocate_pinned(static_cast<std::size_t>(plan.host->arena_bytes),
                                     "--host-memory")),
      residency_(plan, plan.host->ranges, arena_->data()),
      staging_(arena_->data() + plan.host->staging.offset, plan.host->staging_slots,
               slot_bytes(*plan.host)),
      link_(backend),
      transfers_(driver, link_, staging_) {
  OOC_CHECK(plan.host->stored_from_block.size() == plan.tensors.size());
}

std::unique_ptr<TensorStore> HostStore::tensor(int index, TensorStore* stored) {
  return std::make_unique<Tensor>(*this, index, stored);
}

std::unique_ptr<EdgeSource> HostStore::edges(BlockIo& io, const EdgeFile& file,
                                             Direction direction) {
  return std::make_unique<Edges>(*this, io, file, direction);
}

void HostStore::begin_pass(int pass) {
  pass_ = pass;
  residency_.begin_pass(pass);
}

void HostStore::reset() {
  OOC_CHECK(staging_.idle());
  residency_.reset();
}

HostPlace HostStore::place(int tensor, std::int64_t io_chunk, std::int64_t slice) {
  const PlannedTensor& planned = plan_.tensors[static_cast<std::size_t>(tensor)];
  const std::int64_t block = io_chunk * planned.io_chunk_blocks;
  const int range = residency_.find(tensor, block, pass_);
  if (range < 0) return {};
  return {residency_.place(range).at(planned, block * planned.layout.block_rows, slice),
          &residency_.state_at(range, io_chunk, slice)};
}

RowsPlace HostStore::find(int tensor, std::int64_t io_chunk, int pass) {
  const PlannedTensor& planned = plan_.tensors[static_cast<std::size_t>(tensor)];
  const int range = residency_.find(tensor, io_chunk * planned.io_chunk_blocks, pass);
  if (range < 0) return {};
  for (std::int64_t slice = 0; slice < planned.layout.slice_count(); ++slice) {
    if (residency_.state(range, io_chunk, slice) != Presence::kThere) return {};
  }
  return residency_.place(range);
}

}  // namespace ooc
