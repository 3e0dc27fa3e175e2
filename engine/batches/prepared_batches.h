// A superbatch that is ready to be trained on, and how it is made: sampled by readings of the edges
// (sched/sampling/superbatch.h), its rows packed by one of the inputs (packed_rows.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/batches/batch_options.h"
#include "engine/batches/seeds.h"
#include "kernels/device/host_buffer.h"
#include "sched/sampling/packed_rows.h"
#include "sched/sampling/superbatch.h"
#include "storage/dataset/dataset.h"

namespace ooc {

// From and to storage.
struct LoadedBytes {
  std::int64_t read = 0, written = 0;
};

// What is known of a superbatch once it is made, and what came of it.
struct SuperbatchFigures {
  std::int64_t batches = 0;
  std::int64_t vertices = 0, edges = 0;      // of all of them
  std::int64_t hot_rows = 0, cold_rows = 0;  // a cold one for each batch that asks for it
  std::int64_t edge_bytes = 0;               // read, of edge chunks
  std::int64_t list_bytes_read = 0, list_bytes_written = 0;  // of files of vertices and edges
  std::int64_t input_bytes = 0;                              // read, of rows
  std::int64_t cold_bytes = 0;                               // written, and read: 0 in memory
  LoadedBytes moved;                                         // when all batches were used

  LoadedBytes planned() const {
    return {edge_bytes + list_bytes_read + input_bytes + cold_bytes,
            list_bytes_written + cold_bytes};
  }
};

struct PreparedBatches {
  std::int64_t first = 0, end = 0;  // of the seeds' batches
  std::optional<Superbatch> sampled;
  std::vector<std::int64_t> batch_rows;
  std::shared_ptr<HotRows> hot;
  std::optional<PackedRows> rows;
  double sampling_seconds = 0, packing_seconds = 0;  // that making them took

  std::int64_t count() const { return end - first; }
  LoadedBytes bytes() const;          // so far
  SuperbatchFigures figures() const;  // what is planned: before a batch is read
};

// What an edge chunk takes in memory, the largest one.
std::int64_t largest_edge_chunk(const EdgeFile& edges);
// Slots for edge chunks, as many as fit `bytes` or the least that works.
std::int64_t edge_slot_count(const EdgeLayout& edges, std::int64_t largest_chunk,
                             std::int64_t bytes, bool whole_spans);
// Of superbatches, what packing takes: PackedRows.
PackedRowsOptions packing_options(const BatchMemory& memory);
// Batches that go together, by the memory for writes, and as many as may.
std::int64_t most_batches(const BatchMemory& memory);
// As many batches together as that and the bits of a key allow. UsageError naming `where`, if even
// one has too many vertices.
std::int64_t batches_together(const BatchLoaderOptions& options, std::int64_t vertices,
                              std::int64_t edges, const std::string& where);
// Of memory for lists, that of the buffers of those that are written at once, and how many are.
std::int64_t list_buffer_bytes(const BatchMemory& memory);
inline constexpr std::int64_t kListsAtOnce = 3;
// What a request takes while it is resolved. `data`: of the edges.
std::int64_t resolved_bytes(const EdgeData& data);
// Of superbatches, what memory decides.
SuperbatchOptions superbatch_limits(const BatchMemory& memory, const EdgeData& data,
                                    std::int64_t workers);

// One thread at a time.
class SuperbatchMaker {
 public:
  // `packed`: what is packed of every vertex; hot rows of the options are of its records. All of it
  // outlives this, and this what it made.
  SuperbatchMaker(BlockIo& io, FileSystem& files, const Dataset& dataset,
                  const BatchLoaderOptions& options, const std::vector<RowInput>& packed);

  // Of as many batches as go together, from `first` on. Null: `stop` was set. DataError, IoError
  // and BudgetError pass through, and nothing is under way afterwards.
  std::unique_ptr<PreparedBatches> make(const SeedBatches& seeds, std::int64_t first,
                                        const std::atomic<bool>& stop);
  const std::shared_ptr<HotRows>& hot_rows() const { return hot_; }
  double share_done() const { return share_done_; }  // of what make() makes; any thread

 private:
  SuperbatchShape shape(std::int64_t batches) const;
  SuperbatchOptions superbatch_options(const SuperbatchShape& shape) const;
  bool sample(const SeedBatches& seeds, PreparedBatches& batches);
  void check_limits(const std::vector<std::int64_t>& level_rows, std::int64_t batch) const;
  bool pack(const SeedBatches& seeds, PreparedBatches& batches);
  std::shared_ptr<HotRows> hot_for(const SeedBatches& seeds, const PreparedBatches& batches) const;
  std::string scratch_path(const char* name) const;

  BlockIo& io_;
  FileSystem& files_;
  const Dataset& dataset_;
  const BatchLoaderOptions& options_;
  const std::vector<RowInput>& packed_;
  std::shared_ptr<const SampledVertices> vertices_;
  std::shared_ptr<HotRows> hot_;
  EdgeStore edges_;
  std::int64_t slot_count_;  // for edge chunks
  HostBuffer edge_slots_;
  // Batches meanwhile take what it leaves of the workers: they have time while it waits for
  // storage.
  Driver driver_;
  std::int64_t made_ = 0;
  std::atomic<double> share_done_{0};
};

}  // namespace ooc
