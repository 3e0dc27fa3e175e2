// The models: what --model names, built as tensor graphs.
#pragma once

#include <string>
#include <vector>

#include "engine/tensor_graph.h"

namespace ooc {

enum class Norm { kNone, kBatch, kLayer };

struct ModelOptions {
  std::string model = "gcn";
  std::int64_t layers = 2;
  std::int64_t hidden = 128;
  Norm norm = Norm::kNone;
  bool residual = false;     // adds H W_r to every layer's output
  bool linear_head = false;  // every layer has `hidden` columns; a linear map makes the classes
  double dropout = 0.5;
  double input_dropout = 0;

  bool operator==(const ModelOptions&) const = default;
};

// Counts of the dataset that a model's shapes and constants depend on.
struct GraphFacts {
  std::int64_t vertices = 0;
  std::int64_t feature_cols = 0;
  std::int64_t classes = 0;
  std::int64_t train_vertices = 0;
};

enum class Mode {
  kTrain,     // dropout on, batch norm by the batch's statistics
  kEvaluate,  // dropout off, batch norm by the running statistics
};

// How a parameter starts.
enum class Initial { kGlorotUniform, kZero, kOne };

struct ModelParameter {
  std::string name;
  TensorId tensor = -1;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  Initial initial = Initial::kZero;
  bool trainable = true;  // false: the running statistics of a norm
};

// A batch norm's statistics: `sums` is what a training run leaves (null in evaluation), the
// parameters are what the trainer keeps of it.
struct BatchStatistics {
  TensorId sums = -1;
  std::string mean;
  std::string variance;
};

// Names of the inputs besides the dataset's vertex tensors: the row factors of GCN, V x 1, real.
// in_factor = (in-degree + 1)^-1/2 and out_factor likewise, self loops not counted in either;
// loop_factor = 1 - (number of self loops in the data), so that each vertex has one loop.
inline constexpr const char* kInFactor = "in_factor";
inline constexpr const char* kOutFactor = "out_factor";
inline constexpr const char* kLoopFactor = "loop_factor";

struct Model {
  TensorGraph graph;
  std::vector<ModelParameter> parameters;
  std::vector<BatchStatistics> batch_statistics;
  TensorId embedding = -1;  // the last hidden layer, as the last layer or the head reads it
  TensorId logits = -1;
  TensorId loss = -1;  // softmax_cross_entropy's sums per split

  explicit Model(DType real) : graph(real) {}
};

// More than any model needs; they keep a mistyped number from filling the memory.
inline constexpr std::int64_t kMaxLayers = 1000;
inline constexpr std::int64_t kMaxHidden = 1 << 16;

// Names that --model takes.
std::vector<std::string> model_names();

// UsageError for an unknown model name or a wrong option, naming it and what it takes.
void check_options(const ModelOptions& options);

Model build_model(const ModelOptions& options, const GraphFacts& facts, Mode mode, DType real);

}  // namespace ooc
