#include "engine/batches/stored_batch_reader.h"

#include <algorithm>
#include <utility>

#include "storage/base/errors.h"

namespace ooc {

StoredBatchReader::StoredBatchReader(BlockIo& io, const BatchFile& file)
    : file_(file), chunks_(io, file.file()) {
  if (chunks_.mapped(0) != nullptr) return;
  const auto bytes = static_cast<std::size_t>(buffer_bytes(file)) / slots_.size();
  for (Slot& slot : slots_) slot.buffer.emplace(bytes, "batches");
}

StoredBatchReader::~StoredBatchReader() { drop(); }

std::int64_t StoredBatchReader::buffer_bytes(const BatchFile& file) {
  return 2 *
         static_cast<std::int64_t>(io_aligned(static_cast<std::uint64_t>(file.largest_chunk())));
}

void StoredBatchReader::drop() {
  for (Slot& slot : slots_) slot.read.reset();
}

void StoredBatchReader::begin(std::vector<std::int64_t> batches) {
  drop();
  order_ = std::move(batches);
  next_ = 0;
  if (!order_.empty()) submit(0);
}

void StoredBatchReader::submit(std::int64_t at) {
  Slot& to = slot(at);
  std::byte* const data = to.buffer ? to.buffer->data() : chunks_.mapped(chunk(at));
  to.data = data;
  to.read.emplace();
  chunks_.read(chunk(at), data, to.read->completion());
  bytes_read_ += static_cast<std::int64_t>(file_.file().entry(chunk(at)).bytes);
}

bool StoredBatchReader::next() {
  if (next_ == batches()) return false;
  if (next_ > 0) chunks_.release(chunk(next_ - 1));
  const std::int64_t at = next_++;
  if (next_ < batches()) submit(next_);
  slot(at).read->wait();
  const std::size_t bytes = file_.file().entry(chunk(at)).bytes;
  batch_ = file_.view(order_[static_cast<std::size_t>(at)], {slot(at).data, bytes});
  return true;
}

}  // namespace ooc
