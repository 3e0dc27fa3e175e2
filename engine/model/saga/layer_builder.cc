#include "engine/model/saga/layer_builder.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "engine/graph/edge_operators.h"
#include "engine/model/parts/words.h"
#include "engine/model/saga/complaint.h"

namespace ooc::saga {
namespace {

using Kind = Value::Kind;

}  // namespace

LayerBuilder::LayerBuilder(ModelParts& parts, const Program& program, const Layer& layer,
                           const LayerSetting& setting)
    : parts_(parts),
      source_(program.source),
      layer_(layer),
      setting_(setting),
      arithmetic_(parts.graph(), program.source) {}

TensorId LayerBuilder::run(TensorId input) {
  input_ = input;
  loops_ = layer_.gather && layer_.gather->loops;
  weighted_ = layer_.gather && layer_.gather->weights && parts_.uses_weights();
  if (layer_.in == layer_.out) {
    refuse(source_, layer_.place, "two names for two widths", layer_.in + " twice",
           "call them in and out");
  }
  for (const Parameter& parameter : layer_.parameters) {
    Named named;
    named.parameter = &parameter;
    declare(parameter.name, parameter.place, named);
  }
  where_ = Where::kLayer;
  bind(layer_.bindings);
  if (layer_.gather) accum_ = gather();
  where_ = Where::kVertex;
  bind(layer_.vertex.bindings);
  const Expression& result = behind_activation();
  const TensorId out = rows_of(result, evaluate_unbiased(result));
  if (ends_with_activation()) {  // what stands after the rows: leaky_relu's slope
    const std::vector<Expression>& arguments = layer_.vertex.result.children;
    for (std::size_t i = 1; i < arguments.size(); ++i) evaluate(arguments[i]);
  }
  check_used();
  return out;
}

bool LayerBuilder::ends_with_activation() const {
  const Expression& result = layer_.vertex.result;
  if (result.kind != Expression::Kind::kCall || result.children.empty()) return false;
  const auto function = functions().find(result.name);
  return function != functions().end() && function->second.activation;
}

const Expression& LayerBuilder::behind_activation() const {
  return ends_with_activation() ? layer_.vertex.result.children.front() : layer_.vertex.result;
}

TensorId LayerBuilder::activate(TensorId x) {
  if (!ends_with_activation()) return x;
  const Value before = rows_value(parts_.graph(), x);
  return evaluate_call(layer_.vertex.result, &before).tensor;
}

// Batch norm takes a bias away again: its beta is the bias. One before it would only carry rounding
// noise, which Adam turns into full steps. So a sum's last term is left out if it is a vector.
Value LayerBuilder::evaluate_unbiased(const Expression& expression) {
  if (setting_.biased || expression.kind != Expression::Kind::kSum) return evaluate(expression);
  const Expression& last = expression.children.back();
  const auto named = names_.find(last.name);
  const bool is_bias = last.kind == Expression::Kind::kName && named != names_.end() &&
                       named->second.parameter != nullptr &&
                       named->second.parameter->sizes.size() == 1;
  if (!is_bias || expression.operators.back() != '+') return evaluate(expression);
  named->second.used = true;
  Expression rest = expression;
  rest.children.pop_back();
  rest.operators.pop_back();
  return rest.operators.empty() ? evaluate(rest.children.front()) : evaluate(rest);
}

TensorId LayerBuilder::gather() {
  where_ = Where::kEdge;
  const Gather& gather = *layer_.gather;
  Expression source;
  source.kind = Expression::Kind::kName;
  source.name = "src";
  source.place = gather.place;
  if (layer_.edge) bind(layer_.edge->bindings);
  const Expression& result = layer_.edge ? layer_.edge->result : source;
  TensorId edges = rows_of(result, evaluate(result));
  TensorGraph& graph = parts_.graph();
  if (weighted_) {
    const TensorId weights = edge_data("weight", gather.place).tensor;
    edges = graph.apply("scale_rows", {edges, weights});
  }
  const std::string name = setting_.prefix + ".accum";
  std::string fold = gather.fold;
  if (fold == "aggr") fold = word_of(kAggregations, parts_.options().aggr);
  if (fold == "sum") return gather_sum(graph, edges, name);
  if (fold == "mean") {
    const DegreeFactor inverse =
        loops_ ? DegreeFactor::kInverseInWithLoops : DegreeFactor::kInverseIn;
    return gather_mean(graph, edges, parts_.degree_factor(inverse, weighted_), name);
  }
  if (fold == "max") return gather_max(graph, edges, name);
  if (fold == "min") return gather_min(graph, edges, name);
  Expression score = source;
  score.name = gather.score;
  score.place = gather.score_place;
  const TensorId scores = rows_of(score, evaluate(score));
  const std::int64_t heads = parts_.cols(scores);
  if (heads > kMaxHeads || parts_.cols(edges) % heads != 0) {
    refuse(source_, gather.score_place,
           fmt::format("a score for each head: at most {} columns that divide the edges' {}",
                       kMaxHeads, parts_.cols(edges)),
           fmt::format("{} of {} columns", gather.score, heads),
           "head_sum(...) makes a column a head");
  }
  return gather_softmax(graph, scores, edges, name);
}

TensorId LayerBuilder::rows_of(const Expression& expression, const Value& value) const {
  if (value.kind == Kind::kRows) return value.tensor;
  refuse(source_, expression.place, where_ == Where::kEdge ? "rows of edges" : "rows of vertices",
         describe(value), "compute it from src, dst, data, vertex or accum");
}

std::int64_t LayerBuilder::size(const Expression& expression) {
  in_size_ = true;
  const Value value = evaluate(expression);
  in_size_ = false;
  const bool fits = value.kind == Kind::kNumber && value.number == std::floor(value.number) &&
                    value.number >= 1 && value.number <= static_cast<double>(kMaxColumns);
  if (fits) return static_cast<std::int64_t>(value.number);
  refuse(source_, expression.place, fmt::format("a whole number from 1 to {}", kMaxColumns),
         describe(value), "sizes are of in, out, heads and other numbers");
}

Value LayerBuilder::make_parameter(const Parameter& parameter) {
  std::int64_t sizes[2] = {1, 1};  // rows, columns
  const std::size_t given = parameter.sizes.size();
  for (std::size_t i = 0; i < given; ++i) sizes[2 - given + i] = size(parameter.sizes[i]);
  if (sizes[0] * sizes[1] > kMaxElements) {
    refuse(source_, parameter.place, fmt::format("at most {} elements", kMaxElements),
           fmt::format("{} [{}, {}]", parameter.name, sizes[0], sizes[1]), "make it smaller");
  }
  Initial initial = given == 2 || parameter.initial == "glorot" ? kGlorotUniform : kZero;
  if (parameter.constant) initial = {false, *parameter.constant};
  Value value;
  value.kind = Kind::kParameter;
  value.name = parameter.name;
  value.rows = sizes[0];
  value.cols = sizes[1];
  value.tensor =
      parts_.parameter(setting_.prefix + "." + parameter.name, value.rows, value.cols, initial);
  return value;
}

Value LayerBuilder::evaluate(const Expression& expression) {
  switch (expression.kind) {
    case Expression::Kind::kNumber:
      return number_value(expression.number);
    case Expression::Kind::kName:
      return evaluate_name(expression);
    case Expression::Kind::kMember:
      return evaluate_member(expression);
    case Expression::Kind::kCall:
      return evaluate_call(expression);
    case Expression::Kind::kNegate:
      return arithmetic_.negate(evaluate(expression.children[0]), expression.place);
    case Expression::Kind::kSum:
    case Expression::Kind::kProduct:
      break;
  }
  Value value = evaluate(expression.children[0]);
  for (std::size_t i = 1; i < expression.children.size(); ++i) {
    const Expression& right = expression.children[i];
    value = arithmetic_.combine(expression.operators[i - 1], value, evaluate(right), right.place);
  }
  return value;
}

Value LayerBuilder::evaluate_call(const Expression& expression, const Value* first) {
  const auto found = functions().find(expression.name);
  if (found == functions().end()) {
    std::vector<std::string> known;
    for (const auto& [name, function] : functions()) known.push_back(name);
    refuse_name(source_, expression.place, "a function", expression.name, known);
  }
  const Function& function = found->second;
  const std::size_t given = expression.children.size();
  if (given < function.least || given > function.most) {
    refuse(source_, expression.place,
           function.most == 1 ? fmt::format("1 argument of {}", expression.name)
                              : fmt::format("{} arguments of {}", function.least, expression.name),
           fmt::format("{}", given), "engine/model/saga/README.md lists the functions");
  }
  Call call{parts_, source_, setting_, where_ == Where::kEdge, expression, {}, {}};
  for (const Expression& argument : expression.children) {
    const bool is_given = first != nullptr && call.arguments.empty();
    call.arguments.push_back(is_given ? *first : evaluate(argument));
  }
  if (function.owns) {
    const int number = ++owned_[expression.name];
    call.own_name = fmt::format("{}.{}", setting_.prefix, expression.name);
    if (number > 1) call.own_name += fmt::format("{}", number);
  }
  return function.apply(call);
}

}  // namespace ooc::saga
