// The host's memory below devices, as the plan's HostTier says: what passes read and write goes
// through it, and what it has room for stays. To a pass it looks like storage.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "kernels/device/backend.h"
#include "sched/plan/plan.h"
#include "sched/tiers/host_transfers.h"
#include "sched/tiers/kept_chunks.h"
#include "sched/tiers/link.h"
#include "sched/tiers/residency.h"
#include "sched/tiers/staging.h"
#include "storage/stores/edge_chunks.h"
#include "storage/stores/tensor_store.h"

namespace ooc {

// begin_pass(), reset() and find() by a thread, while nothing is under way on any device.
class HostStore {
 public:
  // A plan with a HostTier; all of it outlives the store. `backend`: its host memory is any of the
  // devices'.
  HostStore(Backend& backend, const Plan& plan);

  // What to read a tensor's rows from and to write them to, with memory of the client's device.
  // What comes from storage has been verified. `stored` (null: the plan stores none of it), the
  // client and the store outlive it.
  std::unique_ptr<TensorStore> tensor(HostClient& client, int index, TensorStore* stored);
  // The same for a direction's edge chunks.
  std::unique_ptr<ChunkStore> edges(HostClient& client, const EdgeChunks& stored,
                                    Direction direction);

  void begin_pass(int pass);
  void reset();
  // Rows of an I/O chunk that are in host memory after this pass, in all slices; without data: not
  // all are.
  RowsPlace find(int tensor, std::int64_t io_chunk, int pass);

  // From storage and to it, unpadded, since the last call.
  std::int64_t take_bytes_read() { return transfers_.take_bytes_read(); }
  std::int64_t take_bytes_written() { return transfers_.take_bytes_written(); }
  // Whether every staging slot is free.
  bool idle() const { return staging_.idle(); }

 private:
  class Tensor;
  class Edges;
  HostPlace place(int tensor, std::int64_t io_chunk, std::int64_t slice);

  const Plan& plan_;
  std::unique_ptr<PinnedBuffer> arena_;
  Residency residency_;
  int pass_ = 0;
  std::array<std::optional<KeptChunks>, 2> kept_;  // by direction; states are the transfers'
  Staging staging_;
  HostTransfers transfers_;
};

}  // namespace ooc
