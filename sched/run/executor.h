// Runs a plan's sections, pass by pass. It decides nothing.
//
// Three kinds of threads: those of the BlockIo and of a device's queues complete transfers and what
// the device computes; a device is driven by the caller's thread, or, beside others, by one of its
// own: it waits for what the next step of a pass needs and hands the step to the workers; the
// workers, threads of a TBB arena, check, compute and never wait for transfers. Reads run ahead as
// far as a use's slots of buffers goes.
//
// Rows accumulate in (span, tile) order and reductions over a fixed tree, so results do not depend
// on threads or on the plan; but where several devices load what goes round a ring, each takes
// spans in an order of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/device/backend.h"
#include "sched/plan/plan.h"
#include "sched/plan/program.h"
#include "storage/base/run_clock.h"
#include "storage/dataset/dataset.h"
#include "storage/io/trace.h"
#include "storage/stores/tensor_store.h"

namespace ooc {

// What happened since the counters were last taken.
struct RunCounters {
  // From and to storage, as the plan counts them: with zeros that storage doesn't hold, which are
  // not moved.
  std::int64_t bytes_read = 0;
  std::int64_t bytes_written = 0;
  std::int64_t zeros_read = 0;
  std::int64_t zeros_written = 0;
  std::int64_t bytes_to_device = 0;  // over the link to a device with memory of its own
  std::int64_t bytes_from_device = 0;
  std::int64_t bytes_between_devices = 0;
  double compute_seconds = 0;  // summed over workers; 0 where a device doesn't compute inline
  // Of the driving thread, by cause: for reads, also those that wait for their rows to be written
  // or for others to leave their place; for writes to free other memory; for the workers.
  double read_wait_seconds = 0;
  double write_wait_seconds = 0;
  double compute_wait_seconds = 0;

  RunCounters& operator+=(const RunCounters& other);
};

// One pass's figures in the last run of its section. The bytes of its last rows are its own; what
// they take to leave, when all is computed, is in the next one's seconds.
struct PassReport {
  double seconds = 0;
  RunCounters counters;              // of all devices
  std::vector<RunCounters> devices;  // by device, where there are several; not from and to storage
};

struct EdgeFiles {
  EdgeFiles(const EdgeFile& in_file, const EdgeFile& out_file) : in(in_file), out(out_file) {}
  EdgeFiles(const Dataset& dataset)  // NOLINT(google-explicit-constructor): a dataset has them
      : in(dataset.edge_file(Direction::kIn)), out(dataset.edge_file(Direction::kOut)) {}

  const EdgeFile& in;
  const EdgeFile& out;  // the same, where the graph is symmetric
};

// What programs run on, one after the other or beside each other.
struct RunResources {
  Backend& backend;  // of the first device, which has parameters, sums and results
  BlockIo& io;
  EdgeFiles edges;
  std::string scratch_directory;      // for what plans store
  std::int64_t workers = 1;           // of each device
  std::vector<Backend*> others = {};  // of the other devices, in the order of the plan's
  Trace* trace = nullptr;             // gets what devices do
  RunClock* clock = &machine_clock();
};

// One thread drives it.
class Executor {
 public:
  // `programs`: those the plan was made of. `inputs` by value name: stores of every input, and of
  // the dataset's degrees where a propagation adds loops. All of it, and what `resources` refers
  // to, must outlive the executor, which holds the plan's arenas. IoError where the scratch
  // directory has no room for plan.stored_bytes.
  Executor(const RunResources& resources, std::vector<const Program*> programs, const Plan& plan,
           const std::map<std::string, TensorStore*>& inputs);
  ~Executor();

  // Where parameter `value` of a section's program lies: rows x cols elements of device memory,
  // row-major.
  void bind_parameter(int section, ValueId value, void* data);

  // Devices that aren't there (Backend::simulated()) take their time: what they do has no results.
  //
  // Runs every pass of a section; the thread that calls it, which drives, is prompt from then on
  // (storage/base/wakeup_latency.h). False: `stop` was set, and the run was given up at the next
  // chunk. DataError and IoError pass through from storage; nothing is in flight afterwards.
  bool run(int section, const StepSeed& state, const std::atomic<bool>* stop);

  // The results of the section's last run: a reduction, in device memory; the rows of one of the
  // program's outputs.
  const std::byte* reduction(int section, ValueId value) const;
  // Copies blocks [first_block, end_block) of an output, row-major without padding.
  void read_output(int section, ValueId value, std::int64_t first_block, std::int64_t end_block,
                   void* rows);
  TensorLayout layout(int section, ValueId value) const;
  // Takes an output's store out of the executor, for another one's input. The output must be stored
  // in full (stored_from_block 0, the HostTier's where there is one).
  std::unique_ptr<TensorStore> release_output(int section, ValueId value);

  RunCounters take_counters();
  const std::vector<PassReport>& reports(int section) const;  // by pass, of its last run

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ooc
