#include "engine/model/build.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "engine/graph/edge_operators.h"
#include "engine/graph/row_operators.h"
#include "engine/model/library.h"
#include "engine/model/parts/parts.h"
#include "engine/model/parts/words.h"
#include "engine/model/saga/complaint.h"
#include "engine/model/saga/layer_builder.h"
#include "engine/model/saga/mentions.h"
#include "engine/model/saga/parser.h"
#include "engine/model/saga/stack.h"
#include "storage/base/errors.h"

namespace ooc {
namespace {

using saga::refuse;
using saga::Unit;

saga::Program program_of(const ModelOptions& options) {
  const std::string text = options.program.empty() && !is_program_file(options.model)
                               ? embedded_program(options.model)
                               : options.program;
  return saga::parse(text, model_title(options.model) + ".saga");
}

ValueLoss value_loss(Loss loss) {
  if (loss == Loss::kAbsolute) return ValueLoss::kAbsolute;
  return loss == Loss::kHuber ? ValueLoss::kHuber : ValueLoss::kSquared;
}

// Stacks the layers: input dropout and map, then layer after layer with residual, norm, activation
// and dropout after it, then what the head reads of them, and the head.
class ModelBuilder {
 public:
  ModelBuilder(const ModelOptions& options, const GraphFacts& facts, Mode mode, DType real)
      : options_(options),
        facts_(facts),
        logits_(logit_cols(options.task, facts.classes)),
        program_(program_of(options)),
        parts_(options, facts, mode, real) {
    jumping_ = options.jumping;
    head_ = options.linear_head;
    if (program_.model) read(*program_.model);
    if (jumping_ != Jumping::kNone) head_ = true;
  }

  Model build() {
    const std::vector<Unit> units = saga::units_of(program_, options_.layers);
    TensorGraph& graph = parts_.graph();
    TensorId h = graph.input("features", facts_.feature_cols, graph.real());
    h = parts_.dropout(h, options_.input_dropout);
    if (input_linear_) h = parts_.affine(h, options_.hidden, "input");
    for (std::size_t i = 0; i < units.size(); ++i) {
      const bool last = i + 1 == units.size() && !head_;
      if (last && (i > 0 || input_linear_)) parts_.model().embedding = h;
      h = unit(units[i], h, fmt::format("layer{}", i + 1), last);
      parts_.model().layers.push_back(h);
      if (jumping_ != Jumping::kNone) jump(h, units[i]);
    }
    if (jumping_ != Jumping::kNone) h = jumped_;
    if (head_) {
      parts_.model().embedding = h;
      h = parts_.affine(h, logits_, "head");
    }
    parts_.model().logits = h;
    parts_.count_zero_factors();
    add_loss();
    check_parameters();
    return std::move(parts_.model());
  }

 private:
  void read(const saga::ModelBlock& block) {
    input_linear_ = block.input_linear;
    head_ = head_ || block.head_linear;
    if (block.jumping.empty()) return;
    for (const auto& [word, meaning] : kJumpings) {
      if (block.jumping == word) jumping_ = meaning;
    }
    if (options_.jumping == Jumping::kNone || options_.jumping == jumping_) return;
    throw UsageError(fmt::format("--jumping {}", word_of(kJumpings, options_.jumping)),
                     fmt::format("{} says jumping {}", program_.source, block.jumping),
                     "leave it out");
  }

  TensorId unit(const Unit& unit, TensorId input, const std::string& name, bool last) {
    if (unit.plain && (options_.norm != Norm::kNone || options_.residual)) {
      throw UsageError(options_.residual ? "--residual" : "--norm",
                       fmt::format("the layers of {} are plain", program_.source), "leave it out");
    }
    if (last && unit.steps > 1) {
      refuse(program_.source, unit.place, "head linear after shared layers", "no head",
             "shared layers are all as wide as their input");
    }
    saga::LayerSetting setting{name,
                               0,
                               last ? logits_ : options_.hidden,
                               last ? options_.out_heads : options_.heads,
                               last,
                               last || unit.plain || options_.norm != Norm::kBatch};
    TensorId h = input;
    for (std::int64_t step = 1; step <= unit.steps; ++step) {
      setting.in = parts_.cols(h);
      saga::LayerBuilder layer(parts_, program_, *unit.layer, setting);
      h = layer.run(h);
      if (unit.steps > 1 && parts_.cols(h) != setting.in) {
        refuse(program_.source, unit.place, "shared layers as wide as their input",
               fmt::format("{} columns from {}", parts_.cols(h), setting.in),
               "begin the model with input linear, or leave out shared");
      }
      h = step < unit.steps ? layer.activate(h) : finish(layer, unit, input, h, name, last);
    }
    return h;
  }

  TensorId finish(saga::LayerBuilder& layer, const Unit& unit, TensorId input, TensorId h,
                  const std::string& name, bool last) {
    if (options_.residual) {
      const TensorId linear = parts_.linear(input, parts_.cols(h), name + ".residual");
      h = parts_.graph().apply("add", {h, linear});
    }
    if (last) {
      if (parts_.cols(h) == logits_) return h;
      refuse(program_.source, unit.place,
             fmt::format("{} columns, {}, from the last layer", logits_,
                         options_.task == Task::kBinary       ? "the logit"
                         : options_.task == Task::kRegression ? "the targets"
                                                              : "the classes"),
             fmt::format("{}", parts_.cols(h)), "return what is `out` wide, or say head linear");
    }
    if (options_.norm == Norm::kBatch) h = parts_.batch_norm(h, name + ".norm");
    if (options_.norm == Norm::kLayer) h = parts_.layer_norm(h, name + ".norm");
    h = layer.activate(h);
    return unit.plain ? h : parts_.dropout(h, options_.dropout);
  }

  // Jumping knowledge (Xu et al. 2018): what the head reads of all layers.
  void jump(TensorId h, const Unit& unit) {
    if (jumped_ < 0) {
      jumped_ = h;
      return;
    }
    const bool fits = jumping_ == Jumping::kCat
                          ? parts_.cols(jumped_) + parts_.cols(h) <= saga::kMaxColumns
                          : parts_.cols(jumped_) == parts_.cols(h);
    if (!fits) {
      refuse(program_.source, unit.place,
             fmt::format("layers of equal width for jumping knowledge, {} columns",
                         parts_.cols(jumped_)),
             fmt::format("{}", parts_.cols(h)), "join them with --jumping cat");
    }
    const char* op = jumping_ == Jumping::kSum ? "add" : "maximum";
    jumped_ = parts_.graph().apply(jumping_ == Jumping::kCat ? "concat" : op, {jumped_, h});
  }

  // As the task's loss reads them.
  TensorId labels() {
    TensorGraph& graph = parts_.graph();
    if (options_.task == Task::kBinary) return binary_labels(graph);
    const LabelKind kind = labels_of(options_.task);
    return graph.input("labels", label_cols(kind, logits_), label_dtype(kind));
  }

  void add_loss() {
    TensorGraph& graph = parts_.graph();
    Attributes attributes;
    attributes.count = static_cast<double>(facts_.train_labels);
    std::string name =
        options_.task == Task::kSingle ? "softmax_cross_entropy" : "sigmoid_cross_entropy";
    if (options_.task == Task::kRegression) {
      name = "value_loss";
      attributes.value = static_cast<double>(value_loss(options_.loss));
    }
    std::vector<TensorId> operands{parts_.model().logits, labels(),
                                   graph.input("splits", 1, DType::kU8)};
    if (options_.class_weights.weigh()) {
      name += "_weighted";
      operands.push_back(parts_.parameter(kClassWeightsParameter, 1, logits_, kOne, false));
    }
    parts_.model().loss = graph.apply(name, operands, attributes, "loss");
  }

  // A layer that doesn't look at its input would leave those before it without a gradient.
  void check_parameters() {
    const TensorGraph& graph = parts_.graph();
    if (parts_.model().parameters.empty()) {
      throw UsageError("a program without parameters", program_.source,
                       "there is nothing to train: add head linear or a param");
    }
    std::vector<bool> reached(graph.tensors().size(), false);
    reached[static_cast<std::size_t>(parts_.model().loss)] = true;
    for (auto it = graph.operations().rbegin(); it != graph.operations().rend(); ++it) {
      if (!reached[static_cast<std::size_t>(it->output)]) continue;
      for (const TensorId input : it->inputs) reached[static_cast<std::size_t>(input)] = true;
    }
    for (const ModelParameter& parameter : parts_.model().parameters) {
      if (!parameter.trainable || reached[static_cast<std::size_t>(parameter.tensor)]) continue;
      throw UsageError(fmt::format("{} does not reach the loss", parameter.name), program_.source,
                       "a layer has to return something made of its input");
    }
  }

  const ModelOptions& options_;
  const GraphFacts& facts_;
  std::int64_t logits_;
  saga::Program program_;
  ModelParts parts_;
  Jumping jumping_ = Jumping::kNone;
  bool input_linear_ = false;
  bool head_ = false;
  TensorId jumped_ = -1;
};

void check_probability(const char* option, double value) {
  if (value >= 0 && value < 1) return;
  throw UsageError(fmt::format("wrong value for {}", option), fmt::format("{}", value),
                   "give a probability from 0 up to but not including 1");
}

void check_count(const char* option, std::int64_t value, std::int64_t most) {
  if (value >= 1 && value <= most) return;
  throw UsageError(fmt::format("wrong value for {}", option), fmt::format("{}", value),
                   fmt::format("give a whole number from 1 to {}", most));
}

// An option that a program doesn't read would be taken for one that does something.
void check_read(const saga::Program& program, const std::string& option, bool is_given,
                bool is_read) {
  if (!is_given || is_read) return;
  throw UsageError(fmt::format("--{} would do nothing", option),
                   fmt::format("{} does not read it", program.source), "leave it out");
}

void check_program(const ModelOptions& options) {
  const saga::Program program = program_of(options);
  saga::units_of(program, options.layers);
  const std::set<std::string> names = saga::mentions(program);
  const bool heads = saga::says_heads(program);
  check_read(program, "heads", options.heads != 1, heads);
  check_read(program, "out-heads", options.out_heads != 1, heads);
  check_read(program, "activation", options.activation != Activation::kRelu, names.contains("act"));
  check_read(program, "aggr", options.aggr != Aggregation::kMean, names.contains("aggr"));
  check_read(program, "edge-weights use", options.edge_weights == EdgeWeights::kUse,
             saga::gathers_weighted(program) || saga::says_data_weight(program));
  check_read(program, "attn-dropout", options.attn_dropout != 0, names.contains("attn_dropout"));
}

}  // namespace

void check_options(const ModelOptions& options) {
  check_count("--layers", options.layers, kMaxLayers);
  check_count("--hidden", options.hidden, kMaxHidden);
  check_count("--heads", options.heads, kMaxHeads);
  check_count("--out-heads", options.out_heads, kMaxHeads);
  check_probability("--dropout", options.dropout);
  check_probability("--input-dropout", options.input_dropout);
  check_probability("--attn-dropout", options.attn_dropout);
  check_loss(options.loss, options.task);
  check_program(options);
}

void check_edge_weights(const ModelOptions& options, bool are_there) {
  const saga::Program program = program_of(options);
  if (options.edge_weights == EdgeWeights::kUse && !are_there) {
    throw UsageError("--edge-weights use", "the dataset's edges have no weights",
                     "import it with edge_weights.*, or leave the option out");
  }
  if (options.edge_weights == EdgeWeights::kIgnore && saga::says_data_weight(program)) {
    throw UsageError("--edge-weights ignore", fmt::format("{} reads data.weight", program.source),
                     "leave the option out, or take data.weight out of the program");
  }
}

std::vector<std::string> unread_edge_data(const ModelOptions& options, const GraphFacts& facts) {
  const Model model = build_model(options, facts, Mode::kTrain, DType::kF32);
  const bool weights = facts.edge_weights && options.edge_weights != EdgeWeights::kIgnore;
  std::vector<std::string> unread;
  for (const auto& [there, input, name] :
       {std::tuple(weights, kEdgeWeightsInput, "weights"),
        {facts.edge_types > 1, kEdgeTypesInput, "types"},
        {facts.edge_features > 0, kEdgeFeaturesInput, "features"}}) {
    if (there && !model.graph.has_input(input)) unread.emplace_back(name);
  }
  return unread;
}

Model build_model(const ModelOptions& options, const GraphFacts& facts, Mode mode, DType real) {
  check_options(options);
  check_class_weights(options.class_weights, options.task, facts.classes);
  return ModelBuilder(options, facts, mode, real).build();
}

}  // namespace ooc
