// Programs of a model over a dataset, planned together and ready to run: a section of the plan
// each.
#pragma once

#include <array>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/metrics/block_rows.h"
#include "engine/metrics/metrics.h"
#include "engine/model/program.h"
#include "engine/train/graph_inputs.h"
#include "engine/train/parameters.h"
#include "sched/run/executor.h"

namespace ooc {

// The loss and the accuracy of a split: means over its labels, NaN where there are none; of values
// no accuracy. A weighted loss of single labels is divided by the sum of the weights.
struct SplitLoss {
  double loss = 0;
  double accuracy = std::numeric_limits<double>::quiet_NaN();
};

// One thread.
class ProgramRun {
 public:
  // As Executor's; `programs` are those the plan was made of, in its order. All of it outlives
  // this.
  ProgramRun(const RunResources& resources, std::vector<const ModelProgram*> programs,
             const Plan& plan, const GraphInputs& inputs, ParameterStore& parameters);

  // As Executor::run.
  bool run(int section, const StepSeed& state, const std::atomic<bool>* stop) {
    return executor_.run(section, state, stop);
  }
  // The last run's, of train, valid and test; of a loss that was wanted.
  std::array<SplitLoss, 3> losses(int section, TensorId loss) const;
  // The last run's gradient of a parameter (device memory), until the next run. Where several
  // operations read the parameter it is summed here, in an order that the graph fixes.
  const void* gradient(int section, const ModelParameter& parameter);
  std::vector<double> read_reduction(int section, TensorId tensor) const;  // of an fp64 one
  // The rows of a vertex tensor that was wanted (the logits, the embedding), until the next run.
  BlockRows rows(int section, TensorId tensor);
  RunCounters take_counters() { return executor_.take_counters(); }
  const std::vector<PassReport>& reports(int section) const { return executor_.reports(section); }

 private:
  const ModelProgram& program(int section) const {
    return *programs_[static_cast<std::size_t>(section)];
  }

  Backend& backend_;
  std::vector<const ModelProgram*> programs_;
  const Plan& plan_;
  // By section and parameter, of those read more than once. They go after the executor, which waits
  // for what the device still does with them.
  std::map<std::pair<int, TensorId>, std::unique_ptr<DeviceBuffer>> sums_;
  Executor executor_;
};

// An fp64 reduction of an executor's last run, `count` numbers.
std::vector<double> read_reduction(Backend& backend, const Executor& executor, int section,
                                   ValueId value, std::int64_t count);

// Says what Model::zero_factors counted.
void warn_of_zero_factors(double vertices);

// The tensor of a plan that holds a program's output.
const PlannedTensor& planned_output(const Plan& plan, int section, ValueId value);
// What reading all rows of it once moves.
struct OutputTraffic {
  std::int64_t read = 0;         // from storage
  std::int64_t from_device = 0;  // of a device with memory of its own
};
OutputTraffic output_traffic(const Plan& plan, int section, ValueId value);

// What an evaluation left: rows of logits, where need_logits(), and the loss and accuracy by split.
struct EvaluatedRows {
  std::function<BlockRows()> logits;
  std::function<std::array<SplitLoss, 3>()> losses;
};
// Its metrics. Adds what it reads of labels and splits to `bytes_read`. Nothing: `stop` was set.
std::optional<std::vector<Scores>> scores_of(const EvaluatedRows& evaluated,
                                             const GraphInputs& inputs,
                                             std::span<const Metric> metrics, Task task,
                                             std::int64_t& bytes_read,
                                             const std::atomic<bool>* stop);

// The metrics of a section's last run; the logits are wanted where need_logits(). Adds what it
// reads of labels and splits to `bytes_read`. Nothing: `stop` was set.
std::optional<std::vector<Scores>> run_scores(ProgramRun& run, int section,
                                              const Evaluated& evaluated, const GraphInputs& inputs,
                                              std::span<const Metric> metrics, Task task,
                                              std::int64_t& bytes_read,
                                              const std::atomic<bool>* stop);

}  // namespace ooc
