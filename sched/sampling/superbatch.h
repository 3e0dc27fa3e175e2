// Batches that are sampled together: one reading of the edges a hop, whatever their number. What is
// left of each is its vertices, level by level, and its edges; both lie in lists sorted outside
// memory.
//
// Levels: 0 are the seeds, level l + 1 what edges into level l come from and wasn't there before. A
// batch's vertices are numbered level after level, and in each by the order of the graph's.
//
// Source: batches are those of AGL (§3.2) and of PyG's NeighborLoader: a vertex chooses its
// in-edges once a batch, in the hop after the one that found it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sched/batch/batch_graph.h"
#include "sched/sampling/expand_pass.h"
#include "sched/sampling/resolve_pass.h"

namespace ooc {

struct SuperbatchShape {
  std::uint64_t vertices = 0;    // of the graph
  std::uint64_t batches = 0;     // at most
  std::uint64_t batch_rows = 0;  // of a batch, at most
  // What fits a key of 64 bits.
  bool fits() const {
    return KeyFields::fit(vertices, batches, batch_rows) &&
           KeyFields::fit(batches, batch_rows, batch_rows);
  }
};

struct SuperbatchOptions {
  SuperbatchShape shape;
  std::vector<HopSampling> hops;
  std::string scratch;         // names of files that lists go to begin with it
  std::size_t list_bytes = 0;  // of memory for lists
  ResolveLimits resolve;
  ExpandLimits expand;
};

// One thread drives it.
class Superbatch {
 public:
  // All of it outlives this.
  Superbatch(Driver& driver, FileSystem& files, const SampledGraph& graph,
             SuperbatchOptions options);
  ~Superbatch();

  // Fields of `seeds` and vertices(): vertex, batch, number.
  const KeyFields& fields() const { return requests_; }
  // Samples the batches of `seeds` (their numbers there aren't read) in place of those before.
  // `batch_keys`: random, by batch. False: the driver was stopped. DataError and IoError pass
  // through from storage.
  bool sample(const SortedRuns& seeds, std::span<const std::uint64_t> batch_keys,
              const std::function<void(double share)>& on_progress = nullptr);

  // Of what was sampled last.
  std::int64_t batches() const { return batches_; }
  // Rows of levels 0 to the number of hops.
  std::vector<std::int64_t> level_rows(std::int64_t batch) const;
  // Every vertex of every batch.
  const SortedRuns& vertices() const { return *vertices_; }
  // A batch's edges by destination, then source, and beside them what each carries. Many threads.
  void read_edges(std::int64_t batch, std::vector<BatchEdge>& edges,
                  AlignedVector<std::byte>& records) const;

  std::int64_t bytes_read() const { return bytes_read_; }      // of edge chunks, in all
  std::int64_t bytes_passed() const { return bytes_passed_; }  // of those worked on
  // Of the memory for lists: most for what stays, edges and vertices.
  static constexpr double kVertices = 0.3, kEdges = 0.4, kFresh = 0.1, kChosen = 0.1;
  // Of files of lists, what reading every batch's edges takes: at least, and not many more.
  std::uint64_t edges_read_bound() const;
  std::uint64_t edges() const;  // of all batches
  // To files of lists and from them, so far.
  std::uint64_t list_bytes_written() const;
  std::uint64_t list_bytes_read() const;

 private:
  std::unique_ptr<SortedRuns> open_list(const char* name, std::size_t data_bytes,
                                        double memory_share);
  void drop_asked();
  bool run_hop(std::size_t hop, const SortedRuns& asked, RecordBuffers& vertices,
               std::span<const std::uint64_t> batch_keys,
               const std::function<void(double share)>& on_progress);

  Driver& driver_;
  FileSystem& files_;
  SampledGraph graph_;
  SuperbatchOptions options_;
  KeyFields requests_, numbered_;
  std::int64_t batches_ = 0;
  std::uint64_t opened_ = 0;                        // lists, for their names
  std::vector<std::vector<std::uint32_t>> rows_;    // by level and batch
  std::vector<std::unique_ptr<SortedRuns>> fresh_;  // by level, of those that expand
  std::unique_ptr<SortedRuns> asked_;               // of the hop at hand
  std::unique_ptr<SortedRuns> vertices_;
  std::vector<std::unique_ptr<SortedRuns>> edges_;  // by hop
  std::int64_t bytes_read_ = 0, bytes_passed_ = 0;
  std::uint64_t chosen_written_ = 0, chosen_read_ = 0;  // of requests that are gone
};

}  // namespace ooc
