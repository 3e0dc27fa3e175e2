#include "sched/stream/edge_loader.h"

#include <utility>

#include "kernels/device/host_buffer.h"

namespace ooc {
namespace {

// Where items without bytes lie.
alignas(kIoAlignment) std::byte no_edges[kIoAlignment];

}  // namespace

EdgeStore::EdgeStore(BlockIo& io, const EdgeFile& file, Direction direction, HostStore* host,
                     HostClient* client, const std::vector<EdgeRange>& ranges, std::byte* arena)
    : stored_(io, file),
      host_(host == nullptr ? nullptr : host->edges(*client, stored_, direction)),
      kept_(ranges, direction, file, arena) {}

bool EdgeStore::is_mapped() const {
  for (std::int64_t chunk = 0; chunk < file().layout().chunk_count(); ++chunk) {
    if (bytes(chunk) > 0) return mapped(chunk) != nullptr;
  }
  return false;
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
  std::byte* const mapped = store_.mapped(index);
  return {{mapped != nullptr ? mapped : data, static_cast<std::size_t>(store_.bytes(index))},
          tiles_[static_cast<std::size_t>(item)]};
}

std::int64_t EdgeLoader::chunk(std::int64_t item) const {
  const EdgeItem& at = items_[static_cast<std::size_t>(item)];
  return store_.file().chunk_of(at.span, at.panel);
}

std::byte* EdgeLoader::place(std::int64_t item) const {
  if (store_.bytes(chunk(item)) == 0) return no_edges;
  const KeptChunks::Chunk* const kept = store_.kept(chunk(item));
  return kept == nullptr ? nullptr : kept->data;
}

void EdgeLoader::load(std::int64_t item, std::byte* data, ComingItem& coming) {
  const std::int64_t index = chunk(item);
  const std::int64_t bytes = store_.bytes(index);
  if (bytes == 0) return;
  std::byte* const mapped = store_.mapped(index);
  std::byte* const place = mapped != nullptr ? mapped : data;
  std::function<void()> decode;
  if (host_tiles_) decode = [this, item, place] { EdgeLoader::decode(item, place); };
  if (KeptChunks::Chunk* const kept = store_.kept(index)) {
    if (kept->state == Presence::kThere) {
      if (decode) coming.verify_and_decode(decode);
      return;
    }
    kept->state = Presence::kComing;
  }
  // Mapped chunks are within the plan's memory as others are: their slot holds nothing.
  if (mapped != nullptr) drop_pages({data, io_aligned(static_cast<std::uint64_t>(bytes))});
  bytes_in_ += bytes;
  store_.source().read(index, 0, place, coming.read(decode));
}

// Tiles are decoded where they lie, in the arena or a mapping: headers by the host, lists by the
// kernels.
void EdgeLoader::decode(std::int64_t item, const std::byte* data) {
  const std::int64_t index = chunk(item);
  tiles_[static_cast<std::size_t>(item)] =
      store_.file().tiles(index, {data, static_cast<std::size_t>(store_.bytes(index))});
}

void EdgeLoader::arrived(std::int64_t item) {
  if (KeptChunks::Chunk* const kept = store_.kept(chunk(item))) kept->state = Presence::kThere;
}

bool EdgeLoader::must_wait(std::int64_t item) const {
  const KeptChunks::Chunk* const kept = store_.kept(chunk(item));
  return kept != nullptr && kept->state == Presence::kComing;
}

void EdgeLoader::released(std::int64_t item) {
  tiles_[static_cast<std::size_t>(item)] = {};
  const std::int64_t index = chunk(item);
  if (store_.kept(index) == nullptr && store_.bytes(index) > 0) store_.source().release(index, 0);
}

}  // namespace ooc
