// Runs a program's passes, as planned, as TBB pipelines over chunks. It decides nothing.
//
// A row pass streams row groups: prepare a block's operands (reading, checking checksums), compute
// the steps, add the partial reductions to their trees. A propagate pass streams destination
// blocks: gather their tiles of a group of source spans, run the edge program over them; after the
// last group its steps run as a row pass. Rows accumulate in (span, tile) order and reductions over
// a fixed tree, so results do not depend on threads or on the plan.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "sched/block_source.h"
#include "sched/plan.h"
#include "sched/program.h"
#include "sched/reduction_tree.h"
#include "storage/dataset.h"

namespace ooc {

struct BoundPass;
struct LoopTile;

// What happened since the counters were last taken.
struct RunCounters {
  std::int64_t bytes_read = 0;  // of the dataset's files, through their mappings
  double compute_seconds = 0;   // summed over workers
};

// Memory that several programs' resident tensors share, one program running at a time.
using Arena = std::shared_ptr<DeviceBuffer>;

// One thread drives it.
class Executor {
 public:
  // `inputs` by value name; all of it must outlive the executor. The arena has at least
  // plan.arena_bytes.
  Executor(Backend& backend, const Dataset& dataset, Program program, Plan plan, Arena arena,
           const std::map<std::string, const BlockSource*>& inputs);
  ~Executor();

  const Program& program() const { return program_; }
  const Plan& plan() const { return plan_; }
  // Where parameter `value` lies: rows x cols elements of device memory, row-major.
  void bind_parameter(ValueId value, void* data);

  // Runs every pass. False: `stop` was set, and the run was given up at the next chunk. DataError
  // and IoError pass through from the dataset's files.
  bool run(const RunState& state, const std::atomic<bool>* stop);

  // The results of the last run: a reduction; the chunk of one of the program's outputs, rows lie
  // the layout's slice_stride apart.
  const DeviceBuffer& reduction(ValueId value) const;
  const void* output_chunk(ValueId value, std::int64_t block, std::int64_t slice) const;
  TensorLayout layout(ValueId value) const;

  RunCounters take_counters();

 private:
  struct BlockOperands;  // where the tensors of a pass lie in one block
  struct EdgeToken;      // a destination block of a propagation
  struct EdgeRound;      // what a propagation's tokens share

  void bind(const Pass& pass);
  bool run_rows(BoundPass& pass, const RunState& state, const std::atomic<bool>* stop);
  bool propagate(BoundPass& pass, const RunState& state, const std::atomic<bool>* stop);
  bool propagate_spans(EdgeRound& round, const std::atomic<bool>* stop);
  std::shared_ptr<const LoopTile> read_loops(const EdgeRound& round, std::int64_t block);
  void fold_block(EdgeRound& round, const EdgeToken& token);
  void bind_block(const EdgeRound& round, const EdgeToken& token, TileGroup& group,
                  std::vector<void*>& pointers) const;
  std::shared_ptr<BlockOperands> prepare_block(const BoundPass& pass, std::int64_t block);
  void compute_group(BoundPass& pass, const BlockOperands& block, std::int64_t group,
                     const RunState& state);
  void convert_inputs(const Pass& pass, const BlockOperands& block, std::int64_t begin,
                      std::int64_t count, std::byte* scratch);
  void count_bytes(const BlockSource& input, std::int64_t block, std::int64_t slice);
  std::byte* resident_slice(ValueId value, std::int64_t slice) const;
  void* matrix(ValueId value) const;  // a parameter, or an earlier pass's reduction
  std::byte* worker_scratch();
  const Value& value(ValueId id) const { return program_.values[static_cast<std::size_t>(id)]; }

  Backend& backend_;
  const Dataset& dataset_;
  Program program_;
  Plan plan_;
  Arena arena_;
  std::vector<const BlockSource*> inputs_;    // by value
  std::vector<const Residence*> residences_;  // by value
  std::vector<void*> parameters_;             // by value
  std::map<ValueId, std::unique_ptr<ReductionTree>> reductions_;
  std::vector<std::unique_ptr<BoundPass>> passes_;
  struct Workers;
  std::unique_ptr<Workers> workers_;
  std::atomic<std::int64_t> bytes_read_{0};
  std::atomic<std::int64_t> compute_ns_{0};
};

}  // namespace ooc
