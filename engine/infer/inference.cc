#include "engine/infer/inference.h"

#include <fmt/format.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/machine/dataset_io.h"
#include "engine/model/build.h"
#include "engine/train/program_run.h"
#include "storage/base/errors.h"
#include "storage/dataset/original_names.h"
#include "storage/dataset/result_file.h"
#include "storage/stores/dataset_tensor.h"

namespace ooc {
namespace {

constexpr DType kReal = DType::kF32;
[[noreturn]] void interrupted() {
  throw Interrupted("interrupted, nothing was written", "", "run it again");
}

void check_stop(const std::atomic<bool>* stop) {
  if (stop != nullptr && stop->load()) interrupted();
}

// The dataset's rows of ranges of original vertices.
class RowsById {
 public:
  // Reads all ids once, and a block's again for each range that it may have ids of.
  explicit RowsById(const TensorStore& ids) : ids_(stored_rows(ids, bytes_read_)) {
    for (std::int64_t block = 0; block < ids_.layout().block_count(); ++block) {
      const std::span<const std::int64_t> block_ids = ids_of(block);
      const auto [least, largest] = std::minmax_element(block_ids.begin(), block_ids.end());
      ranges_.emplace_back(*least, *largest);
    }
  }

  // Calls visit(id, row) for the ids of [begin, end), by rows.
  template <class Visit>
  void visit(std::int64_t begin, std::int64_t end, Visit&& visit) {
    for (std::size_t block = 0; block < ranges_.size(); ++block) {
      if (ranges_[block].first >= end || ranges_[block].second < begin) continue;
      std::int64_t row = static_cast<std::int64_t>(block) * ids_.layout().block_rows;
      for (const std::int64_t id : ids_of(static_cast<std::int64_t>(block))) {
        if (id >= begin && id < end) visit(id, row);
        ++row;
      }
    }
  }

 private:
  std::span<const std::int64_t> ids_of(std::int64_t block) {
    return {static_cast<const std::int64_t*>(ids_.block(block)),
            static_cast<std::size_t>(ids_.layout().rows_of(block))};
  }

  std::int64_t bytes_read_ = 0;
  BlockRows ids_;
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges_;  // least and largest id by block
};

// Rows of classes, of rows of logits that lie one after the other.
class Classifier {
 public:
  Classifier(Task task, std::int64_t cols) : task_(task), cols_(cols) {}

  ResultShape shape(std::int64_t rows) const {
    const bool many = task_ == Task::kMultiLabel;
    return {many ? DType::kU8 : DType::kI64, rows, many ? cols_ : 0};
  }
  void append(const float* logits, std::int64_t rows, ResultFile& file) {
    if (task_ == Task::kMultiLabel) {
      bits_.resize(static_cast<std::size_t>(rows * cols_));
      std::transform(logits, logits + rows * cols_, bits_.begin(),
                     [](float x) { return static_cast<std::uint8_t>(x > 0); });
      file.append(bits_.data(), rows);
      return;
    }
    classes_.resize(static_cast<std::size_t>(rows));
    for (std::size_t i = 0; i < classes_.size(); ++i) {
      const float* row = logits + static_cast<std::int64_t>(i) * cols_;
      classes_[i] = task_ == Task::kBinary ? static_cast<std::int64_t>(row[0] > 0)
                                           : std::max_element(row, row + cols_) - row;
    }
    file.append(classes_.data(), rows);
  }

 private:
  Task task_;
  std::int64_t cols_;
  std::vector<std::int64_t> classes_;
  std::vector<std::uint8_t> bits_;
};

// Writes a result in the original vertex order, as many rows at a time as its memory holds.
class ResultWriter {
 public:
  ResultWriter(const GraphInputs& inputs, std::int64_t memory_bytes, ResultFile& file,
               const std::atomic<bool>* stop)
      : rows_by_id_(inputs.store("ids")), memory_bytes_(memory_bytes), file_(file), stop_(stop) {}

  // `classifier`: its classes instead of the rows.
  void write_rows(BlockRows& source, Classifier* classifier) {
    const TensorLayout& layout = source.layout();
    std::vector<float> values;
    const std::int64_t class_bytes =
        classifier == nullptr ? 0 : std::max(layout.cols, std::int64_t{sizeof(std::int64_t)});
    for_each_batch(layout, layout.cols * std::int64_t{sizeof(float)} + class_bytes,
                   [&](std::int64_t begin, std::int64_t end) {
                     values.resize(static_cast<std::size_t>((end - begin) * layout.cols));
                     rows_by_id_.visit(begin, end, [&](std::int64_t id, std::int64_t row) {
                       source.copy_row(row, values.data() + (id - begin) * layout.cols);
                     });
                     if (classifier != nullptr) {
                       classifier->append(values.data(), end - begin, file_);
                     } else {
                       file_.append(values.data(), end - begin);
                     }
                   });
  }

  // What the input calls the vertices.
  void write_ids(BlockRows& original_ids) {
    std::vector<std::int64_t> ids;
    for_each_batch(original_ids.layout(), sizeof(std::int64_t),
                   [&](std::int64_t begin, std::int64_t end) {
                     ids.resize(static_cast<std::size_t>(end - begin));
                     rows_by_id_.visit(begin, end, [&](std::int64_t id, std::int64_t row) {
                       original_ids.copy_row(row, &ids[static_cast<std::size_t>(id - begin)]);
                     });
                     file_.append_ids(ids);
                   });
  }
  void write_names(const OriginalNames& names, const TensorLayout& layout) {
    // Twice the mean, and what holds it.
    const std::int64_t bytes = 64 + 2 * (names.end() / std::max<std::int64_t>(1, layout.rows));
    std::string buffer;
    for_each_batch(layout, bytes, [&](std::int64_t begin, std::int64_t end) {
      std::vector<std::string> batch(static_cast<std::size_t>(end - begin));
      std::pair<std::int64_t, std::int64_t> at{-1, -1};
      rows_by_id_.visit(begin, end, [&](std::int64_t id, std::int64_t row) {
        const auto place = names.place_of(row);
        if (std::exchange(at, place) != place) names.release();
        batch[static_cast<std::size_t>(id - begin)] = names.of(row, buffer);
      });
      names.release();
      file_.append_names(batch);
    });
  }

 private:
  // Calls write(first id, end) for batches of ids whose rows of `row_bytes` the memory holds.
  template <class Write>
  void for_each_batch(const TensorLayout& layout, std::int64_t row_bytes, Write&& write) {
    const std::int64_t batch = std::max<std::int64_t>(1, memory_bytes_ / row_bytes);
    for (std::int64_t begin = 0; begin < layout.rows; begin += batch) {
      check_stop(stop_);
      write(begin, std::min(begin + batch, layout.rows));
    }
  }

  RowsById rows_by_id_;
  std::int64_t memory_bytes_;
  ResultFile& file_;
  const std::atomic<bool>* stop_;
};

// What is computed once a run is no gain in a single one, and would be kept in memory.
Rewrites rewrites_for_one_run(const RunConfig& config) {
  Rewrites rewrites = parse_rewrites(config.rewrites);
  rewrites.hoisting = false;
  return rewrites;
}

// Whether the dataset's labels are of the model's task: a graph the model hasn't seen may have
// none, or others.
bool can_score(const Dataset& dataset, const Checkpoint& checkpoint) {
  if (!dataset.has_splits() || dataset.tensor("labels") == nullptr) return false;
  const LabelKind kind = labels_of(checkpoint.config.model.task);
  if (dataset.manifest().labels != kind) return false;
  const std::int64_t classes = dataset.manifest().classes;
  return kind == LabelKind::kSingle ? classes <= checkpoint.classes : classes == checkpoint.classes;
}

// The metrics to score by.
std::vector<Metric> metrics_for(const Dataset& dataset, const Checkpoint& checkpoint,
                                const InferenceOptions& options) {
  const bool scores = can_score(dataset, checkpoint);
  if (options.metrics.empty()) return scores ? checkpoint.config.metrics : std::vector<Metric>{};
  check_metrics(options.metrics, checkpoint.config.model.task, checkpoint.classes);
  if (scores) return options.metrics;
  throw DataError("--metric, but the dataset has no splits and labels of the model's task",
                  dataset.path(), "leave it out, or import the dataset with labels and splits");
}

void check_output(Output output, Task task) {
  const bool values = task == Task::kRegression;
  if (output == Output::kEmbeddings || (output == Output::kValues) == values) return;
  throw UsageError(
      values ? "a model of values has no classes" : "a model of classes has no values", "--what",
      values ? "ask for values or embeddings" : "ask for logits, classes or embeddings");
}

void check_fits(const Dataset& dataset, const Checkpoint& checkpoint) {
  const std::int64_t cols = dataset.manifest().feature_cols;
  if (dataset.tensor("features") == nullptr || cols != checkpoint.feature_cols) {
    throw DataError(fmt::format("dataset has {} feature columns, the model was trained on {}", cols,
                                checkpoint.feature_cols),
                    dataset.path(), "use a dataset with the same features");
  }
  if (checkpoint.config.model.edge_weights == EdgeWeights::kUse &&
      !dataset.manifest().edges.data.weights) {
    throw DataError("dataset without weights of edges, the model was trained with them",
                    dataset.path(), "import it with the weights of its edges");
  }
  if (checkpoint.edge_types > 1 && dataset.manifest().edge_types == 0) {
    throw DataError(fmt::format("dataset without types of edges, the model was trained on {}",
                                checkpoint.edge_types),
                    dataset.path(), "import it with the types of its edges");
  }
  if (dataset.manifest().edge_types > std::max<std::int64_t>(1, checkpoint.edge_types)) {
    throw DataError(fmt::format("dataset has {} types of edges, the model was trained on {}",
                                dataset.manifest().edge_types, checkpoint.edge_types),
                    dataset.path(), "use a dataset with the same types");
  }
}

struct InferencePlan {
  Plan plan;
  std::int64_t result_bytes = 0;  // of memory for results
};

// The results in `output` take a quarter of the budget at most (the more, the less often rows in
// another order are read), and little where a plan fits only so. `own_bytes`: taken besides.
InferencePlan plan_inference(const ModelProgram& program, TensorId output,
                             const GraphCounts& counts, std::int64_t own_bytes,
                             const RunBudget& budget) {
  constexpr std::int64_t kLeast = 4 << 20, kUnlimited = 1 << 30;
  const std::int64_t vertices = counts.edges.vertices;
  const std::int64_t output_bytes =
      vertices * program.model().graph.shape(output).cols * std::int64_t{sizeof(float)};
  const TensorLayout ids{vertices, 1, counts.edges.block_rows};
  Reserved reserved{
      budget.resident_bytes + own_bytes + kLeast + output_reserve(program, output, counts) +
      2 * stored_reserve(ids, DType::kI64) +  // ours, and the input's
      process_reserve(budget.plan.workers, parameter_bytes(program, Mode::kEvaluate), counts)};
  if (budget.plan.device) reserved.device_bytes = device_reserve(program, Mode::kEvaluate);
  const std::int64_t wanted =
      std::min(output_bytes, budget.host_bytes > 0 ? budget.host_bytes / 4 : kUnlimited);
  if (wanted > kLeast) {
    Reserved with_results = reserved;
    with_results.host_bytes += wanted - kLeast;
    auto plan = try_plan_in_budget({&program.program()}, counts, budget, with_results);
    if (plan) return {std::move(*plan), wanted};
  }
  return {plan_in_budget({&program.program()}, counts, budget, reserved), kLeast};
}

// Of what is written as it is computed.
ResultShape shape_of(Output output, std::int64_t vertices, std::int64_t cols) {
  const bool is_vector = output == Output::kValues && cols == 1;
  return {DType::kF32, vertices, is_vector ? 0 : cols};
}

Wanted wanted_of(const std::vector<Metric>& metrics, Task task, Output output) {
  Wanted wanted;
  wanted.loss = !metrics.empty();
  wanted.embedding = output == Output::kEmbeddings;
  wanted.logits = !wanted.embedding || need_logits(metrics, task);
  wanted.zero_factors = true;
  return wanted;
}

void warn_of_zero_factors(const ProgramRun& run, const Model& model) {
  if (model.zero_factors < 0) return;
  ooc::warn_of_zero_factors(run.read_reduction(0, model.zero_factors)[0]);
}

GraphFacts facts_for(const Dataset& dataset, const Checkpoint& checkpoint) {
  GraphFacts facts = facts_of(dataset);
  facts.classes = checkpoint.classes;
  facts.edge_types = checkpoint.edge_types;
  return facts;
}

}  // namespace

Output default_output(Task task) {
  return task == Task::kRegression ? Output::kValues : Output::kLogits;
}

InferenceResult run_inference(FileSystem& files, Backend& backend, BlockIo& given_io,
                              const Dataset& dataset, const Checkpoint& checkpoint,
                              const InferenceOptions& options, const std::atomic<bool>* stop) {
  check_fits(dataset, checkpoint);
  const ModelOptions& model = checkpoint.config.model;
  const GraphFacts facts = facts_for(dataset, checkpoint);
  check_output(options.output, model.task);
  const std::vector<Metric> metrics = metrics_for(dataset, checkpoint, options);
  const Wanted wanted = wanted_of(metrics, model.task, options.output);
  if (wanted.embedding && build_model(model, facts, Mode::kEvaluate, kReal).embedding < 0) {
    throw UsageError("a model of one layer has no hidden layer", "--what embeddings",
                     "ask for its logits, classes or values");
  }
  const ModelProgram program(model, facts, Mode::kEvaluate, wanted, kReal,
                             {rewrites_for_one_run(checkpoint.config)});
  if (wanted.loss) dataset.check_labels();
  ParameterStore parameters(backend, kReal, program.model().parameters, Mode::kEvaluate);
  parameters.restore(checkpoint.state.parameters, "the checkpoint");
  const TensorId tensor = wanted.embedding ? program.model().embedding : program.model().logits;
  const std::int64_t cols = program.model().graph.shape(tensor).cols;
  RunBudget budget = options.budget;
  budget.plan.workers = tbb::this_task_arena::max_concurrency();
  budget.plan.stop = stop;
  const GraphCounts counts = counts_of(dataset);
  std::int64_t own_bytes = metric_reserve(program, metrics, model.task, counts);
  std::optional<OriginalNames> names;
  if (dataset.manifest().remapped == IdKind::kStrings) {
    constexpr std::int64_t kHeaps = 8 << 20;  // of HDF5 and of what is freed
    own_bytes += names.emplace(dataset).resident_bytes() + kHeaps;
  }
  const InferencePlan planned = plan_inference(program, tensor, counts, own_bytes, budget);
  std::unique_ptr<BlockIo> mapped;
  if (options.may_map && mapping_pays(dataset, budget, planned.plan)) {
    mapped = make_mapped_block_io(given_io);
  }
  BlockIo& io = mapped ? *mapped : given_io;
  const GraphInputs inputs(io, dataset);
  ProgramRun run({backend, io, dataset, options.scratch, budget.plan.workers}, {&program},
                 planned.plan, inputs, parameters);
  if (!run.run(0, {}, stop)) interrupted();
  warn_of_zero_factors(run, program.model());
  Classifier classifier(model.task, cols);
  const bool classes = options.output == Output::kClasses;
  const auto file = make_result_file(files, options.path,
                                     classes ? classifier.shape(dataset.vertices())
                                             : shape_of(options.output, dataset.vertices(), cols));
  ResultWriter writer(inputs, planned.result_bytes, *file, stop);
  BlockRows rows = run.rows(0, tensor);
  writer.write_rows(rows, classes ? &classifier : nullptr);
  std::int64_t bytes_read = 0;
  if (names) {
    writer.write_names(*names, inputs.store("ids").layout());
  } else if (dataset.remapped()) {
    const DatasetTensor store(io, *dataset.tensor("original_ids"));
    BlockRows ids = stored_rows(store, bytes_read);
    writer.write_ids(ids);
  }
  file->finish();
  InferenceResult result;
  if (wanted.loss) {
    auto scores =
        run_scores(run, 0, program.evaluated(), inputs, metrics, model.task, bytes_read, stop);
    if (!scores) throw Interrupted("interrupted before the scores", options.path, "it is complete");
    result.scores = std::move(*scores);
  }
  return result;
}

}  // namespace ooc
