// The last pass over a superbatch: reads inputs' rows in the order of the vertices and gives the
// row records that batches ask for to the hot rows, unless they are there, and to the batches'
// regions.
//
// A stretch of vertices after the other is begun: a worker reads its words and counts the rows of
// each batch. Stretches are committed in order: that gives rows their places, which therefore don't
// depend on the workers. Then a worker copies the stretch's rows.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "kernels/device/host_buffer.h"
#include "sched/sampling/record_buffers.h"
#include "sched/sampling/row_chunk_loader.h"
#include "sched/sampling/row_counts.h"
#include "sched/sampling/row_record.h"
#include "sched/sampling/row_regions.h"
#include "sched/stream/hazards.h"
#include "sched/stream/item_stream.h"
#include "sched/workers/driver.h"

namespace ooc {

// Whose rows go where. All of it outlives the packer.
struct RowTargets {
  HotRows& hot;
  RowRegions& regions;
  RecordBuffers& places;  // of words (batch, number, place), a buffer a worker of the driver
  const KeyFields& place_fields;
};

class RowPacker {
 public:
  // `slots`: I/O chunks of every input in memory. The driver has no other work.
  RowPacker(Driver& driver, const RowRequests& requests, const RowRecord& record,
            const RowCounts& counts, const RowTargets& targets, std::int64_t slots,
            std::atomic<std::int64_t>& bytes_read);

  // Once. False: stopped. Errors of storage pass through; nothing is under way afterwards.
  // `on_progress` is told the share that is begun; empty: nobody.
  bool run(const std::function<void(double share)>& on_progress);

  // Stretches that are begun and not done.
  static std::int64_t stretches_at_once(std::int64_t workers) { return 2 * workers + 2; }
  // The bytes that the pass reads.
  static std::int64_t input_bytes(const RowRecord& record, const RowCounts& counts);

 private:
  struct Input {
    std::vector<std::int64_t> uses;  // by item: stretches
    std::int64_t item = -1;          // of the stretch that is committed next
    std::int64_t chunk = -1;
    std::int64_t chunk_rows = 0;
    HostBuffer slots;
    RowChunkLoader* loader = nullptr;
    std::unique_ptr<ItemStream> stream;
  };
  // A strip of the stretch's first row.
  struct Source {
    const std::byte* row;
    std::size_t stride, bytes, offset, padding;
  };
  struct Stretch {
    const RowStretch* range = nullptr;
    bool counted = false;
    Records words;
    std::vector<std::uint32_t> rows;         // cold, by batch, that aren't copied
    std::vector<std::uint32_t> first, next;  // index of the first of all, and of those
    std::vector<std::int64_t> items;         // by input, where rows are read
    std::vector<Source> sources;
    std::vector<std::byte> record;  // room for one
  };

  void open(const RowInput& of, std::int64_t slots, std::atomic<std::int64_t>& bytes_read);
  bool pack(const std::function<void(double share)>& on_progress);
  void advance();
  bool may_begin() const;
  void begin();
  void hold_items(const RowStretch& range);
  void point_to_rows(Stretch& stretch);
  bool may_commit() const;
  void commit();
  // By workers.
  void count(Stretch& stretch) const;
  void copy(Stretch& stretch) const;
  void copy_vertex(Stretch& stretch, std::size_t worker, std::int64_t vertex,
                   std::span<const std::uint64_t> words) const;
  void prefetch_row(const Stretch& stretch, const std::uint64_t* copied) const;
  void gather(const Stretch& stretch, std::int64_t row, std::byte* to) const;
  void done(Stretch& stretch);

  Driver& driver_;
  const RowRequests& requests_;
  const RowRecord& record_;
  const RowCounts& counts_;
  RowTargets targets_;
  Hazards hazards_;
  std::vector<Input> inputs_;
  // Under the driver's lock, but for what tasks work on.
  std::vector<Stretch> stretches_;  // places for those at once
  std::size_t begun_ = 0, committed_ = 0;
};

}  // namespace ooc
