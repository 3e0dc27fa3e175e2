#include "sched/tiers/host_store.h"

#include <utility>

#include "sched/plan/io_chunks.h"
#include "storage/base/errors.h"

namespace ooc {

class HostStore::Tensor final : public TensorStore {
 public:
  Tensor(HostStore& cache, HostClient& client, int index, TensorStore* stored)
      : cache_(cache),
        client_(client),
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
    cache_.transfers_.to_device(client_, item(io_chunk, slice),
                                cache_.place(index_, io_chunk, slice), data, std::move(done));
  }
  void write(std::int64_t io_chunk, std::int64_t slice, std::byte* data, std::int64_t,
             BlockCompletion done) override {
    cache_.transfers_.from_device(client_, item(io_chunk, slice),
                                  cache_.place(index_, io_chunk, slice), data, std::move(done));
  }
  bool needs_decoding(std::int64_t, std::int64_t) const override { return false; }
  void verify_and_decode(std::int64_t, std::int64_t, std::byte*) const override {}

 private:
  HostItem item(std::int64_t io_chunk, std::int64_t slice) const {
    const auto bytes = static_cast<std::size_t>(io_chunk_payload(planned_, io_chunk, slice));
    const bool is_stored = io_chunk * planned_.io_chunk_blocks >= stored_from_block_;
    TensorStore* const store = is_stored ? stored_ : nullptr;
    return {bytes, io_chunk, slice, store, store};
  }

  HostStore& cache_;
  HostClient& client_;
  int index_;
  const PlannedTensor& planned_;
  std::int64_t stored_from_block_;
  TensorStore* stored_;
};

class HostStore::Edges final : public ChunkStore {
 public:
  Edges(HostStore& cache, HostClient& client, const EdgeChunks& stored, KeptChunks& kept)
      : cache_(cache), client_(client), stored_(stored), kept_(kept) {}

  void read(std::int64_t chunk, std::int64_t, std::byte* data,
            BlockCompletion done) const override {
    KeptChunks::Chunk* const kept = kept_.find(chunk);
    const HostPlace place = kept == nullptr ? HostPlace{} : HostPlace{kept->data, &kept->state};
    cache_.transfers_.to_device(client_, {stored_.bytes(chunk), chunk, 0, &stored_}, place, data,
                                std::move(done));
  }
  bool needs_decoding(std::int64_t, std::int64_t) const override { return false; }
  void verify_and_decode(std::int64_t, std::int64_t, std::byte*) const override {}

 private:
  HostStore& cache_;
  HostClient& client_;
  const EdgeChunks& stored_;
  KeptChunks& kept_;
};

namespace {

std::int64_t slot_bytes(const HostTier& host) {
  const std::int64_t bytes = host.staging_slots > 0 ? host.staging.bytes / host.staging_slots : 0;
  OOC_CHECK(bytes % static_cast<std::int64_t>(kIoAlignment) == 0);
  return bytes;
}

}  // namespace

HostStore::HostStore(Backend& backend, const Plan& plan)
    : plan_(plan),
      arena_(backend.allocate_pinned(static_cast<std::size_t>(plan.host->arena_bytes),
                                     "--host-memory")),
      residency_(plan, plan.host->ranges, arena_->data()),
      staging_(arena_->data() + plan.host->staging.offset, plan.host->staging_slots,
               slot_bytes(*plan.host), plan.devices.size()),
      transfers_(staging_) {
  OOC_CHECK(plan.host->stored_from_block.size() == plan.tensors.size());
}

std::unique_ptr<TensorStore> HostStore::tensor(HostClient& client, int index, TensorStore* stored) {
  return std::make_unique<Tensor>(*this, client, index, stored);
}

std::unique_ptr<ChunkStore> HostStore::edges(HostClient& client, const EdgeChunks& stored,
                                             Direction direction) {
  std::optional<KeptChunks>& kept = kept_[static_cast<std::size_t>(direction)];
  if (!kept) kept.emplace(plan_.host->edge_ranges, direction, stored.file(), arena_->data());
  return std::make_unique<Edges>(*this, client, stored, *kept);
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
