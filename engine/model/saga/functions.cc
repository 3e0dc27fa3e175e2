#include "engine/model/saga/functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/model/saga/complaint.h"

namespace ooc::saga {
namespace {

using Kind = Value::Kind;

[[noreturn]] void refuse_argument(const Call& call, std::size_t i, const std::string& expected,
                                  const std::string& remedy = "") {
  refuse(call.source, call.expression.children[i].place,
         fmt::format("{} in {}(...)", expected, call.expression.name), describe(call.arguments[i]),
         remedy);
}

TensorId rows(const Call& call, std::size_t i) {
  if (call.arguments[i].kind != Kind::kRows) refuse_argument(call, i, "rows");
  return call.arguments[i].tensor;
}

TensorId rows_of(const Call& call, std::size_t i, std::int64_t cols) {
  const TensorId tensor = rows(call, i);
  if (call.arguments[i].cols != cols) refuse_argument(call, i, fmt::format("{} columns", cols));
  return tensor;
}

double number(const Call& call, std::size_t i) {
  if (call.arguments[i].kind != Kind::kNumber) refuse_argument(call, i, "a number");
  return call.arguments[i].number;
}

std::int64_t count(const Call& call, std::size_t i, std::int64_t least, std::int64_t most) {
  const double value = number(call, i);
  if (value != std::floor(value) || value < static_cast<double>(least) ||
      value > static_cast<double>(most)) {
    refuse_argument(call, i, fmt::format("a whole number from {} to {}", least, most));
  }
  return static_cast<std::int64_t>(value);
}

double probability(const Call& call, std::size_t i) {
  const double value = number(call, i);
  if (!(value >= 0 && value < 1)) refuse_argument(call, i, "a probability below 1");
  return value;
}

// Heads the columns of an argument divide into.
std::int64_t heads_of(const Call& call, std::size_t i) {
  rows(call, i);
  const std::int64_t heads = call.setting.heads;
  if (call.arguments[i].cols % heads != 0) {
    refuse_argument(call, i, fmt::format("columns for {} heads", heads));
  }
  return heads;
}

Value apply(const Call& call, const char* op, const std::vector<TensorId>& inputs,
            const Attributes& attributes = {}) {
  TensorGraph& graph = call.parts.graph();
  return rows_value(graph, graph.apply(op, inputs, attributes));
}

// relu, elu and the others of one operand, under the operator's own name.
Value unary(Call& call) { return apply(call, call.expression.name.c_str(), {rows(call, 0)}); }

Value act(Call& call) {
  return rows_value(call.parts.graph(), call.parts.activation(rows(call, 0)));
}

Value leaky_relu(Call& call) {
  Attributes attributes;
  attributes.value = number(call, 1);
  if (attributes.value < 0 || attributes.value > 1) refuse_argument(call, 1, "a slope from 0 to 1");
  return apply(call, "leaky_relu", {rows(call, 0)}, attributes);
}

Value square_root(Call& call) {
  const double value = number(call, 0);
  if (value < 0) refuse_argument(call, 0, "a number that is not negative");
  return number_value(std::sqrt(value));
}

Value maximum(Call& call) {
  const TensorId a = rows(call, 0);
  return apply(call, "maximum", {a, rows_of(call, 1, call.arguments[0].cols)});
}

Value concat(Call& call) {
  TensorId all = rows(call, 0);
  std::int64_t cols = call.arguments[0].cols;
  for (std::size_t i = 1; i < call.arguments.size(); ++i) {
    const TensorId next = rows(call, i);
    cols += call.arguments[i].cols;
    if (cols > kMaxColumns) {
      refuse_argument(call, i, fmt::format("at most {} columns together", kMaxColumns));
    }
    all = call.parts.graph().apply("concat", {all, next});
  }
  return rows_value(call.parts.graph(), all);
}

Value columns(Call& call) {
  const TensorId x = rows(call, 0);
  const std::int64_t cols = call.arguments[0].cols;
  Attributes attributes;
  attributes.begin = count(call, 1, 0, cols - 1);
  attributes.cols = count(call, 2, 1, cols - attributes.begin);
  return apply(call, "columns", {x}, attributes);
}

Value dropout(Call& call) {
  const TensorId x = rows(call, 0);
  if (call.on_edges) {
    refuse(call.source, call.expression.place, "edge_dropout on edges", "dropout",
           "dropout is for vertices");
  }
  return rows_value(call.parts.graph(), call.parts.dropout(x, probability(call, 1)));
}

Value edge_dropout(Call& call) {
  const std::int64_t heads = heads_of(call, 0);
  if (!call.on_edges) {
    refuse(call.source, call.expression.place, "dropout on vertices", "edge_dropout",
           "edge_dropout is for edges");
  }
  return rows_value(call.parts.graph(),
                    call.parts.edge_dropout(call.arguments[0].tensor, probability(call, 1), heads));
}

Value head_sum(Call& call) {
  Attributes attributes;
  attributes.heads = heads_of(call, 0);
  return apply(call, "head_sum", {call.arguments[0].tensor}, attributes);
}

Value head_dot(Call& call) {
  Attributes attributes;
  attributes.heads = heads_of(call, 0);
  const TensorId b = rows_of(call, 1, call.arguments[0].cols);
  return apply(call, "head_dot", {call.arguments[0].tensor, b}, attributes);
}

Value scale_heads(Call& call) {
  const TensorId x = rows(call, 0), factors = rows(call, 1);
  if (call.arguments[0].cols % call.arguments[1].cols != 0) {
    refuse_argument(call, 1, fmt::format("columns that divide {}", call.arguments[0].cols));
  }
  return apply(call, "scale_heads", {x, factors});
}

Value merge_heads(Call& call) {
  Attributes attributes;
  attributes.heads = heads_of(call, 0);
  if (!call.setting.last || attributes.heads == 1) return call.arguments[0];
  return apply(call, "heads_mean", {call.arguments[0].tensor}, attributes);
}

Value gru(Call& call) {
  const TensorId state = rows(call, 2);
  const std::int64_t gates = 3 * call.arguments[2].cols;
  return apply(call, "gru", {rows_of(call, 0, gates), rows_of(call, 1, gates), state});
}

void only_on_vertices(const Call& call) {
  if (!call.on_edges) return;
  refuse(call.source, call.expression.place, "a function of edges", call.expression.name,
         "it works on vertices only");
}

Value batch_norm(Call& call) {
  only_on_vertices(call);
  return rows_value(call.parts.graph(), call.parts.batch_norm(rows(call, 0), call.own_name));
}

Value layer_norm(Call& call) {
  only_on_vertices(call);
  return rows_value(call.parts.graph(), call.parts.layer_norm(rows(call, 0), call.own_name));
}

// x, or a linear map of it where it is not as wide as asked for.
Value resize(Call& call) {
  only_on_vertices(call);
  const TensorId x = rows(call, 0);
  const std::int64_t cols = count(call, 1, 1, kMaxColumns);
  if (call.arguments[0].cols == cols) return call.arguments[0];
  return rows_value(call.parts.graph(), call.parts.linear(x, cols, call.own_name));
}

// Of columns for each type of edges, those of the edge's type.
Value pick_type(Call& call) {
  const TensorId x = rows(call, 0);
  const std::int64_t types = std::max<std::int64_t>(1, call.parts.facts().edge_types);
  if (call.arguments[1].kind != Kind::kTypes) refuse_argument(call, 1, "data.type");
  if (call.arguments[0].cols % types != 0) {
    refuse_argument(call, 0, fmt::format("columns for {} types of edges", types));
  }
  if (types == 1) return call.arguments[0];
  Attributes attributes;
  attributes.cols = call.arguments[0].cols / types;
  return apply(call, "pick_type", {x, call.arguments[1].tensor}, attributes);
}

}  // namespace

const std::map<std::string, Function>& functions() {
  constexpr std::size_t kMany = 16;
  static const std::map<std::string, Function> table{
      // least and most arguments, what it does, activation, owns parameters
      {"act", {1, 1, act, true}},
      {"relu", {1, 1, unary, true}},
      {"elu", {1, 1, unary, true}},
      {"gelu", {1, 1, unary, true}},
      {"sigmoid", {1, 1, unary, true}},
      {"tanh", {1, 1, unary, true}},
      {"leaky_relu", {2, 2, leaky_relu, true}},
      {"exp", {1, 1, unary}},
      {"sqrt", {1, 1, square_root}},
      {"maximum", {2, 2, maximum}},
      {"concat", {2, kMany, concat}},
      {"columns", {3, 3, columns}},
      {"dropout", {2, 2, dropout}},
      {"edge_dropout", {2, 2, edge_dropout}},
      {"head_sum", {1, 1, head_sum}},
      {"head_dot", {2, 2, head_dot}},
      {"scale_heads", {2, 2, scale_heads}},
      {"merge_heads", {1, 1, merge_heads}},
      {"gru", {3, 3, gru}},
      {"batch_norm", {1, 1, batch_norm, false, true}},
      {"layer_norm", {1, 1, layer_norm, false, true}},
      {"resize", {2, 2, resize, false, true}},
      {"pick_type", {2, 2, pick_type}},
  };
  return table;
}

}  // namespace ooc::saga
