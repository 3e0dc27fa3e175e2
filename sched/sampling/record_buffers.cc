#include "sched/sampling/record_buffers.h"

#include <utility>

#include "storage/edges/edge_sorter.h"

namespace ooc {

RecordBuffers::RecordBuffers(SortedRuns& runs, std::int64_t workers, std::size_t records)
    : runs_(runs),
      data_bytes_(runs.data_bytes()),
      most_(records),
      buffers_(static_cast<std::size_t>(workers)) {}

std::int64_t RecordBuffers::record_bytes(std::size_t data_bytes) {
  constexpr std::int64_t kGrown = 2;  // data grows by doubling
  return static_cast<std::int64_t>(sizeof(std::uint64_t) + kGrown * data_bytes) +
         sort_memory(data_bytes);
}

void RecordBuffers::write(Records& buffer) {
  sort_records(buffer, data_bytes_);
  if (buffer.size() < most_) {  // what stays in memory takes no more than it has
    buffer.keys.shrink_to_fit();
    buffer.data.shrink_to_fit();
  }
  runs_.write(runs_written_++, std::move(buffer));
  buffer.clear();
}

void RecordBuffers::finish() {
  for (Buffer& buffer : buffers_) {
    write(buffer.records);
    buffer.records = {};
  }
  runs_.finish();
}

}  // namespace ooc
