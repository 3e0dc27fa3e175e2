#include "sched/stream/edge_loader.h"

#include <utility>

#include "kernels/device/host_buffer.h"

namespace ooc {
namespace {

// Where items without bytes lie.
alignas(kIoAlignment) std::byte no_edges[kIoAlignment];

}  // namespace

EdgeStore::EdgeStore(std::unique_ptr<EdgeSource> source)
    : source_(std::move(source)),
      states_(static_cast<std::size_t>(file().layout().chunk_count()), Presence::kAbsent) {}

bool EdgeStore::is_mapped() const {
  for (std::int64_t chunk = 0; chunk < file().layout().chunk_count(); ++chunk) {
    if (bytes(chunk) > 0) return source_->mapped(chunk) != nullptr;
  }
  return false;
}

void EdgeStore::reset() {
  for (Presence& state : states_) {
    if (state == Presence::kComing) state = Presence::kAbsent;
  }
}

void EdgeStore::keep(std::int64_t end_chunk, std::byte* memory) {
  for (std::int64_t chunk = 0; chunk < end_chunk; ++chunk) {
    places_.push_back(memory);
    memory += io_aligned(static_cast<std::uint64_t>(bytes(chunk)));
  }
}

EdgeLoader::EdgeLoader(EdgeStore& store, std::vector<EdgeItem> items,
                       std::atomic<std::int64_t>& bytes_in, bool host_tiles)
    : store_(store),
      items_(std::move(items)),
      bytes_in_(bytes_in),
      host_tiles_(host_tiles),
      tiles_(items_.size()) {}

EdgeWindow::Span EdgeLoader::span(std::int64_t item, const std::byte* data) const {
  const std::int64_t index = chunk(item);
  std::byte* const mapped = store_.bytes(index) > 0 ? store_.source().mapped(index) : nullptr;
  return {{mapped != nullptr ? mapped : data, static_cast<std::size_t>(store_.bytes(index))},
          tiles_[static_cast<std::size_t>(item)]};
}

std::int64_t EdgeLoader::chunk(std::int64_t item) const {
  const EdgeItem& at = items_[static_cast<std::size_t>(item)];
  return store_.file().chunk_of(at.span, at.panel);
}

std::byte* EdgeLoader::place(std::int64_t item) const {
  if (store_.bytes(chunk(item)) == 0) return no_edges;
  return store_.place(chunk(item));
}

void EdgeLoader::load(std::int64_t item, std::byte* data, ComingItem& coming) {
  const std::int64_t index = chunk(item);
  const std::int64_t bytes = store_.bytes(index);
  if (bytes == 0) return;
  std::byte* const mapped = store_.source().mapped(index);
  std::byte* const place = mapped != nullptr ? mapped : data;
  std::function<void()> decode;
  if (host_tiles_) decode = [this, item, place] { EdgeLoader::decode(item, place); };
  if (store_.place(index) != nullptr) {
    if (store_.state(index) == Presence::kThere) {
      if (decode) coming.verify_and_decode(decode);
      return;
    }
    store_.set(index, Presence::kComing);
  }
  // Mapped chunks are within the plan's memory as others are: their slot holds nothing.
  if (mapped != nullptr) drop_pages({data, io_aligned(static_cast<std::uint64_t>(bytes))});
  bytes_in_ += bytes;
  store_.source().read(index, place, coming.read(decode));
}

// Tiles are decoded where they lie, in the arena or a mapping: headers by the host, lists by the
// kernels.
void EdgeLoader::decode(std::int64_t item, const std::byte* data) {
  const std::int64_t index = chunk(item);
  tiles_[static_cast<std::size_t>(item)] =
      store_.source().tiles(index, {data, static_cast<std::size_t>(store_.bytes(index))});
}

void EdgeLoader::arrived(std::int64_t item) {
  const std::int64_t index = chunk(item);
  if (store_.place(index) != nullptr) store_.set(index, Presence::kThere);
}

bool EdgeLoader::must_wait(std::int64_t item) const {
  const std::int64_t index = chunk(item);
  return store_.place(index) != nullptr && store_.state(index) == Presence::kComing;
}

void EdgeLoader::released(std::int64_t item) {
  tiles_[static_cast<std::size_t>(item)] = {};
  const std::int64_t index = chunk(item);
  const bool kept = store_.place(index) != nullptr;
  if (!kept && store_.bytes(index) > 0) store_.source().release(index);
}

}  // namespace ooc
