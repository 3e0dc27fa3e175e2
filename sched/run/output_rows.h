// The rows of a section's output for the host, wherever they lie after its last pass: in the
// arena, in host memory below a device, or in storage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/device/backend.h"
#include "kernels/device/host_buffer.h"
#include "sched/plan/plan.h"
#include "sched/run/executor.h"
#include "sched/tiers/host_store.h"
#include "sched/tiers/residency.h"
#include "storage/stores/tensor_store.h"

namespace ooc {

struct OutputPlace {
  Backend& backend;
  const Plan& plan;
  Residency& residency;
  HostStore* host = nullptr;      // null: none
  TensorStore* stored = nullptr;  // null: in no store
  int tensor = -1;                // of the plan
  int last_pass = 0;
};

// One thread, while no pass runs.
class OutputRows {
 public:
  // Adds what it moves to `counters`.
  OutputRows(const OutputPlace& place, RunCounters& counters);
  // Blocks [first_block, end_block), row-major without padding.
  void copy(std::int64_t first_block, std::int64_t end_block, std::byte* rows);

 private:
  RowsPlace io_chunk_of(std::int64_t block);
  RowsPlace from_device(std::int64_t io_chunk, int range);
  RowsPlace from_storage(std::int64_t io_chunk);
  RowsPlace bounce(std::int64_t io_chunk);
  void copy_block(const RowsPlace& place, std::int64_t block, std::byte* rows) const;

  OutputPlace at_;
  const PlannedTensor& tensor_;
  RunCounters& counters_;
  std::unique_ptr<HostBuffer> buffer_;  // for one I/O chunk
};

}  // namespace ooc
