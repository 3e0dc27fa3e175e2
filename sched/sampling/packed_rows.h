// The inputs' rows of all vertices of a superbatch' batches: read once, in order, and packed, so
// that each batch's rows are at hand when its turn comes.
//
// Rows that many batches ask for are hot: they stay in memory, once, for one superbatch after the
// other. Every batch has a copy of its other rows, which are cold, in a region of its own of one
// temporary file, that is read sequentially.
//
//   PackedRows rows(io, files, requests, inputs, hot, options);
//   {
//     const auto lock = hot.lock();
//     if (!rows.count(driver) || !rows.pack(driver)) return;  // stopped
//   }
//   ComingRows now, next;
//   rows.read(0, now);
//   ...  rows.read(1, next);  rows.assemble(now, outputs);
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/device/host_buffer.h"
#include "sched/sampling/hot_rows.h"
#include "sched/sampling/row_assembly.h"
#include "sched/sampling/row_counts.h"
#include "sched/sampling/row_record.h"
#include "sched/sampling/row_regions.h"
#include "sched/workers/driver.h"
#include "storage/edges/sorted_runs.h"
#include "storage/io/block_file.h"
#include "storage/io/file.h"

namespace ooc {

struct PackedRowsOptions {
  std::string scratch;                   // a directory for temporary files
  std::string places_path;               // of a file that is made there
  std::int64_t places_bytes = 0;         // of a word a row of a batch; more go to the file
  std::int64_t write_bytes = 256 << 20;  // of buffers of cold rows on their way to the file, about
  std::int64_t input_slots = 6;  // I/O chunks of every input: one being copied, others coming
  std::int64_t words_at_once = 64 << 10;  // of a stretch of vertices, about, if write_bytes allow
  std::int64_t run_places = 4 << 20;      // words of a run of places
};

// What row records and I/O chunks of their inputs take.
struct RowSizes {
  std::int64_t record = 0;
  std::int64_t slots = 0;  // for an I/O chunk of every input
};

// Of a superbatch, all batches read once.
struct PackedBytes {
  std::int64_t inputs_read = 0;
  std::int64_t cold_written = 0, cold_read = 0;  // of the file
};

class PackedRows;

// A batch's rows on their way, or here: from read() on. It keeps its memory, for one batch after
// the other.
class ComingRows {
 public:
  ComingRows() = default;
  ComingRows(const ComingRows&) = delete;
  ComingRows& operator=(const ComingRows&) = delete;
  ~ComingRows() { forsake(); }

  std::int64_t batch() const { return batch_; }  // -1: of none
  // Of memory.
  std::int64_t bytes() const;

 private:
  friend class PackedRows;
  void wait();
  void forsake();  // waits, whatever comes

  std::int64_t batch_ = -1;
  Records words_;
  std::optional<HostBuffer> cold_;
  BlockWait reads_;
  std::future<void> places_;
};

// count(), then pack(), each once and by one thread; then the others, which many threads may call.
// After an error, or where it was stopped, it is good for nothing more.
class PackedRows {
 public:
  // `io`, `files`, the stores, the hot rows, of these inputs' records, and the requests' words
  // outlive it; the words only until pack() has returned.
  PackedRows(BlockIo& io, FileSystem& files, const RowRequests& requests,
             std::vector<RowInput> inputs, HotRows& hot, PackedRowsOptions options);

  // What count() and pack() take of memory beside hot rows and places_bytes, of words in so many
  // runs, at most. Afterwards only ComingRows are left.
  static std::int64_t working_bytes(const RowSizes& sizes, const PackedRowsOptions& options,
                                    std::int64_t batches, std::int64_t runs, std::int64_t workers);
  // Of a stretch: its cold rows have half of the memory for writes.
  static std::int64_t words_at_once(const PackedRowsOptions& options, std::int64_t record_bytes);
  // What ComingRows take for a batch, about, with the rows of it that lie in a file.
  static std::int64_t coming_bytes(const RowRecord& record, std::int64_t rows,
                                   std::int64_t file_rows);

  // Chooses the hot rows unless that is done, and counts what is left. The driver, here and below,
  // has no other work, and until pack() returns the caller has the hot rows' lock. False: stopped.
  // Errors of storage pass through, and nothing is under way afterwards.
  bool count(Driver& driver);
  const RowCounts& counts() const { return *counts_; }
  // What pack() and the batches will move.
  PackedBytes planned_bytes() const;

  // Reads and packs the rows, after count(). The result doesn't depend on the driver's workers.
  // BudgetError and IoError where there is no memory or no space. `on_progress` is told the share
  // that is begun.
  bool pack(Driver& driver, const std::function<void(double share)>& on_progress = nullptr);
  PackedBytes moved_bytes() const;  // so far
  bool has_cold() const { return regions_->in_file(); }
  std::uint64_t places_file_bytes() const { return places_->file_bytes(); }
  std::uint64_t places_read_bytes() const { return places_->read_bytes(); }  // so far
  // What reading every batch's places takes of the file: at least, and not many more.
  std::uint64_t places_read_bound() const;

  const RowRecord& record() const { return record_; }
  // Submits the reads of a batch's rows; returns at once. `rows` must not outlive this.
  void read(std::int64_t batch, ComingRows& rows) const;
  // Waits for them, and throws what went wrong. Then writes the first RowOutput::rows of every
  // input, in the caller's TBB arena; any number of times.
  void assemble(ComingRows& rows, std::span<const RowOutput> outputs) const;

 private:
  KeyFields make_place_fields() const;

  BlockIo& io_;
  FileSystem& files_;
  RowRequests requests_;
  RowRecord record_;
  HotRows& hot_;
  PackedRowsOptions options_;
  std::vector<std::int64_t> batch_rows_;
  std::optional<RowCounts> counts_;
  std::optional<KeyFields> place_fields_;
  std::optional<RowRegions> regions_;
  std::optional<SortedRuns> places_;
  std::atomic<std::int64_t> inputs_read_{0};
  mutable std::atomic<std::int64_t> cold_read_{0};
};

}  // namespace ooc
