#include "sched/stream/pending_writes.h"

#include "storage/base/errors.h"

namespace ooc {

void PendingWrites::add(const IoChunk& io_chunk) { OOC_CHECK(io_chunks_.insert(io_chunk).second); }

void PendingWrites::remove(const IoChunk& io_chunk) { OOC_CHECK(io_chunks_.erase(io_chunk) == 1); }

}  // namespace ooc
