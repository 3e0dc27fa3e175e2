#include "engine/inference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "engine/graph_inputs.h"
#include "engine/model_program.h"
#include "storage/errors.h"
#include "storage/original_names.h"
#include "storage/result_file.h"

namespace ooc {
namespace {

constexpr DType kReal = DType::kF32;
constexpr std::int64_t kBatchRows = 16384;

// The dataset's row of each original vertex.
std::vector<std::int64_t> rows_by_id(const Dataset& dataset) {
  std::vector<std::int64_t> ids(static_cast<std::size_t>(dataset.vertices()));
  dataset.tensor("ids")->read_rows(0, dataset.vertices(), ids.data());
  std::vector<std::int64_t> rows(ids.size());
  for (std::size_t row = 0; row < ids.size(); ++row) {
    rows[static_cast<std::size_t>(ids[row])] = static_cast<std::int64_t>(row);
  }
  return rows;
}

// Copies one row of a program's output, slice by slice.
void read_row(const ModelProgram& program, TensorId tensor, const TensorLayout& layout,
              std::int64_t row, float* out) {
  const std::int64_t block = row / layout.block_rows;
  for (std::int64_t slice = 0; slice < layout.slice_count(); ++slice) {
    const auto* chunk = static_cast<const float*>(program.chunk(tensor, block, slice));
    std::memcpy(out + slice * kSliceWidth,
                chunk + row % layout.block_rows * layout.slice_stride(slice),
                static_cast<std::size_t>(layout.slice_cols(slice)) * sizeof(float));
  }
}

// What the input calls the vertices of these rows, where ids are strings.
void write_names(const Dataset& dataset, const std::vector<std::int64_t>& rows, ResultFile& file) {
  const OriginalNames names(dataset);
  std::vector<std::string> batch;
  std::string buffer;
  for (const std::int64_t row : rows) {
    batch.emplace_back(names.of(row, buffer));
    if (batch.size() < static_cast<std::size_t>(kBatchRows)) continue;
    file.append_names(batch);
    batch.clear();
  }
  file.append_names(batch);
}

// What the input calls the vertices of these rows.
void write_ids(const Dataset& dataset, const std::vector<std::int64_t>& rows, ResultFile& file) {
  if (dataset.manifest().remapped == IdKind::kStrings) return write_names(dataset, rows, file);
  std::vector<std::int64_t> by_row(rows.size()), batch;
  dataset.tensor("original_ids")->read_rows(0, dataset.vertices(), by_row.data());
  for (std::size_t begin = 0; begin < rows.size(); begin += batch.size()) {
    batch.resize(std::min<std::size_t>(kBatchRows, rows.size() - begin));
    std::transform(rows.begin() + static_cast<std::ptrdiff_t>(begin),
                   rows.begin() + static_cast<std::ptrdiff_t>(begin + batch.size()), batch.begin(),
                   [&](std::int64_t row) { return by_row[static_cast<std::size_t>(row)]; });
    file.append_ids(batch);
  }
}

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

// Everything in the original vertex order, a batch of rows at a time; `classifier`: its classes.
void write_rows(const ModelProgram& program, TensorId tensor, Classifier* classifier,
                const Dataset& dataset, ResultFile& file, const std::atomic<bool>* stop) {
  const TensorLayout layout = program.layout(tensor);
  const std::vector<std::int64_t> rows = rows_by_id(dataset);
  std::vector<float> values(static_cast<std::size_t>(kBatchRows * layout.cols));
  for (std::int64_t begin = 0; begin < layout.rows; begin += kBatchRows) {
    if (stop != nullptr && stop->load()) {
      throw Interrupted("interrupted, nothing was written", "", "run it again");
    }
    const std::int64_t count = std::min(kBatchRows, layout.rows - begin);
    for (std::int64_t i = 0; i < count; ++i) {
      read_row(program, tensor, layout, rows[static_cast<std::size_t>(begin + i)],
               values.data() + i * layout.cols);
    }
    if (classifier != nullptr) {
      classifier->append(values.data(), count, file);
    } else {
      file.append(values.data(), count);
    }
  }
  if (dataset.remapped()) write_ids(dataset, rows, file);
  file.finish();
}

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
  const bool many = checkpoint.config.model.task == Task::kMultiLabel;
  if ((dataset.manifest().labels == LabelKind::kMulti) != many) return false;
  const std::int64_t classes = dataset.manifest().classes;
  return many ? classes == checkpoint.classes : classes <= checkpoint.classes;
}

void check_fits(const Dataset& dataset, const Checkpoint& checkpoint) {
  const std::int64_t cols = dataset.manifest().feature_cols;
  if (dataset.tensor("features") == nullptr || cols != checkpoint.feature_cols) {
    throw DataError(fmt::format("dataset has {} feature columns, the model was trained on {}", cols,
                                checkpoint.feature_cols),
                    dataset.path(), "use a dataset with the same features");
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

}  // namespace

InferenceResult run_inference(FileSystem& files, Backend& backend, const Dataset& dataset,
                              const Checkpoint& checkpoint, Output output, const std::string& path,
                              const std::atomic<bool>* stop) {
  check_fits(dataset, checkpoint);
  const ModelOptions& model = checkpoint.config.model;
  GraphFacts facts = facts_of(dataset);
  facts.classes = checkpoint.classes;
  facts.edge_types = checkpoint.edge_types;
  if (output == Output::kEmbeddings &&
      build_model(model, facts, Mode::kEvaluate, kReal).embedding < 0) {
    throw UsageError("a model of one layer has no hidden layer", "--what embeddings",
                     "ask for logits or classes");
  }
  const Metric metric = checkpoint.config.metric;
  Wanted wanted;
  wanted.loss = can_score(dataset, checkpoint);
  wanted.embedding = output == Output::kEmbeddings;
  wanted.logits = !wanted.embedding || (wanted.loss && needs_logits(metric, model.task));
  ModelProgram program(model, facts, counts_of(dataset), Mode::kEvaluate, wanted, kReal,
                       {rewrites_for_one_run(checkpoint.config)});
  ParameterStore parameters(backend, kReal, program.model().parameters);
  parameters.restore(checkpoint.state.parameters, "the checkpoint");
  GraphInputs inputs(dataset);
  if (wanted.loss) dataset.check_labels();
  program.bind(backend, dataset, inputs,
               backend.allocate(static_cast<std::size_t>(program.plan().arena_bytes)), parameters);
  if (!program.run({}, stop)) {
    throw Interrupted("interrupted, nothing was written", "", "run it again");
  }
  const TensorId tensor = wanted.embedding ? program.model().embedding : program.model().logits;
  const std::int64_t cols = program.layout(tensor).cols;
  Classifier classifier(model.task, cols);
  const bool classes = output == Output::kClasses;
  const ResultShape shape = classes ? classifier.shape(dataset.vertices())
                                    : ResultShape{DType::kF32, dataset.vertices(), cols};
  const auto file = make_result_file(files, path, shape);
  write_rows(program, tensor, classes ? &classifier : nullptr, dataset, *file, stop);
  InferenceResult result;
  if (wanted.loss) result.scores = run_scores(program, inputs, metric, model.task).scores;
  return result;
}

}  // namespace ooc
