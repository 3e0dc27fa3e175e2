// A model as a tensor graph, and the options it is built by (engine/model/build.h).
#pragma once

#include <string>
#include <vector>

#include "engine/graph/tensor_graph.h"
#include "engine/model/parts/class_weights.h"
#include "engine/model/parts/task.h"

namespace ooc {

enum class Norm { kNone, kBatch, kLayer };
enum class Jumping { kNone, kSum, kCat, kMax };
enum class Activation { kRelu, kElu, kGelu };
enum class Aggregation { kMean, kMax, kSum };
// What gathers that say `with weights` do; kAuto: use them where the dataset has some.
enum class EdgeWeights { kAuto, kUse, kIgnore };

struct ModelOptions {
  std::string model = "gcn";  // a name of engine/model/library.h, or a file
  std::string program;        // its text; empty: that of the model of this name
  std::int64_t layers = 2;
  std::int64_t hidden = 128;   // of one head
  std::int64_t heads = 1;      // of every layer but the last
  std::int64_t out_heads = 1;  // of the last
  Norm norm = Norm::kNone;
  bool residual = false;     // adds H W_r to every layer's output
  bool linear_head = false;  // every layer has `hidden` columns; a linear map makes the classes
  Jumping jumping = Jumping::kNone;  // what the head reads of all layers; not kNone: there is one
  Activation activation = Activation::kRelu;
  Aggregation aggr = Aggregation::kMean;  // of programs that gather by it
  double dropout = 0.5;
  double input_dropout = 0;
  double attn_dropout = 0;
  Task task = Task::kSingle;  // how many logits there are, and the loss
  Loss loss = Loss::kCrossEntropy;
  ClassWeights class_weights;
  EdgeWeights edge_weights = EdgeWeights::kAuto;

  bool operator==(const ModelOptions&) const = default;
};

// Counts of the dataset that a model's shapes and constants depend on.
struct GraphFacts {
  std::int64_t vertices = 0;
  std::int64_t feature_cols = 0;
  std::int64_t classes = 0;        // or targets
  std::int64_t train_labels = 0;   // entries of the training vertices: the loss is their mean
  std::int64_t edge_types = 0;     // 0: edges have none
  std::int64_t edge_features = 0;  // columns; 0: edges have none
  bool edge_weights = false;
};

enum class Mode {
  kTrain,     // dropout on, batch norm by the batch's statistics
  kEvaluate,  // dropout off, batch norm by the running statistics
};

// How a parameter starts: Glorot-uniform, or every element at `constant`.
struct Initial {
  bool glorot = false;
  double constant = 0;
};
inline constexpr Initial kGlorotUniform{true, 0};
inline constexpr Initial kZero{false, 0};
inline constexpr Initial kOne{false, 1};

struct ModelParameter {
  std::string name;
  TensorId tensor = -1;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  Initial initial;
  bool trainable = true;  // false: the running statistics of a norm
};

// A batch norm's statistics: `sums` is what a training run leaves (null in evaluation), the
// parameters are what the trainer keeps of it.
struct BatchStatistics {
  TensorId sums = -1;
  std::string mean;
  std::string variance;
};

// The parameter that holds the class weights, 1 x logits, where the model has them; not trained.
inline constexpr const char* kClassWeightsParameter = "loss.class_weights";

// What an evaluation asks of a model.
struct Evaluated {
  TensorId logits = -1;
  TensorId loss = -1;  // as Model's
};

struct Model {
  TensorGraph graph;
  std::vector<ModelParameter> parameters;
  std::vector<BatchStatistics> batch_statistics;
  TensorId embedding = -1;  // what the last layer or the head reads; -1: the features themselves
  std::vector<TensorId> layers;  // the rows after each layer, the last one's logits too
  TensorId logits = -1;
  TensorId loss = -1;  // the sums per split of the task's loss (kernels/spec/row_kernels.h)
  // A count, fp64: the vertices whose weights add up to 0 or less where a root is taken of the sum
  // (weighted_degree_factor()). -1: there is no such factor.
  TensorId zero_factors = -1;
  Evaluated evaluated;  // of a model that is trained, where its graph evaluates it as well

  explicit Model(DType real) : graph(real) {}
};

// More than any model needs; they keep a mistyped number from filling the memory.
inline constexpr std::int64_t kMaxLayers = 1000;
inline constexpr std::int64_t kMaxHidden = 1 << 16;
inline constexpr std::int64_t kMaxHeads = 32;

}  // namespace ooc
