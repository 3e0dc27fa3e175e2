#include "sched/edge_loader.h"

namespace ooc {
namespace {

// Where items without bytes lie.
alignas(kIoAlignment) std::byte nothing[kIoAlignment];

}  // namespace

EdgeStore::EdgeStore(BlockIo& io, const EdgeFile& file)
    : file_(file),
      reader_(io, file.file()),
      states_(static_cast<std::size_t>(file.layout().chunk_count()), State::kAbsent) {}

void EdgeStore::forget() {
  for (State& state : states_) {
    if (state == State::kComing) state = State::kAbsent;
  }
}

void EdgeStore::keep(std::int64_t end_chunk, std::byte* memory) {
  for (std::int64_t chunk = 0; chunk < end_chunk; ++chunk) {
    places_.push_back(memory);
    memory += reader_.buffer_bytes(static_cast<std::uint64_t>(chunk));
  }
}

EdgeLoader::EdgeLoader(EdgeStore& store, std::vector<EdgeItem> items,
                       std::atomic<std::int64_t>& bytes_read)
    : store_(store), items_(std::move(items)), bytes_read_(bytes_read), tiles_(items_.size()) {}

std::uint64_t EdgeLoader::chunk(std::int64_t item) const {
  const EdgeItem& at = items_[static_cast<std::size_t>(item)];
  return static_cast<std::uint64_t>(store_.file().chunk_of(at.span, at.panel));
}

std::byte* EdgeLoader::place(std::int64_t item) const {
  if (store_.reader().buffer_bytes(chunk(item)) == 0) return nothing;
  return store_.place(static_cast<std::int64_t>(chunk(item)));
}

void EdgeLoader::load(std::int64_t item, std::byte* data,
                      const std::function<BlockCompletion()>& completion) {
  const std::uint64_t index = chunk(item);
  const auto at = static_cast<std::int64_t>(index);
  const auto bytes = store_.file().file().entry(index).bytes;
  if (bytes == 0) return;
  if (store_.place(at) != nullptr) {
    if (store_.state(at) == EdgeStore::State::kThere) return;
    store_.set(at, EdgeStore::State::kComing);
  }
  bytes_read_ += static_cast<std::int64_t>(bytes);
  store_.reader().read(index, data, completion());
}

bool EdgeLoader::needs_check(std::int64_t item) const {
  return store_.reader().buffer_bytes(chunk(item)) > 0;
}

void EdgeLoader::check(std::int64_t item, const std::byte* data) {
  const std::uint64_t index = chunk(item);
  const auto bytes = static_cast<std::size_t>(store_.file().file().entry(index).bytes);
  tiles_[static_cast<std::size_t>(item)] =
      store_.file().tiles(static_cast<std::int64_t>(index), {data, bytes});
}

void EdgeLoader::arrived(std::int64_t item) {
  const auto index = static_cast<std::int64_t>(chunk(item));
  if (store_.place(index) != nullptr) store_.set(index, EdgeStore::State::kThere);
}

bool EdgeLoader::is_coming(std::int64_t item) const {
  const auto index = static_cast<std::int64_t>(chunk(item));
  return store_.place(index) != nullptr && store_.state(index) == EdgeStore::State::kComing;
}

void EdgeLoader::released(std::int64_t item) { tiles_[static_cast<std::size_t>(item)] = {}; }

}  // namespace ooc
