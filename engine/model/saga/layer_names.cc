// What names stand for in a layer.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "engine/graph/edge_operators.h"
#include "engine/graph/row_operators.h"
#include "engine/model/saga/complaint.h"
#include "engine/model/saga/layer_builder.h"
#include "storage/base/errors.h"

namespace ooc::saga {
namespace {

using Kind = Value::Kind;

const std::set<std::string> kRowNames{"src", "dst", "data", "vertex", "accum"};
const std::vector<std::string> kNumberNames{"heads", "merged",  "layers",       "hidden",
                                            "types", "dropout", "attn_dropout", "edge_features"};
const std::map<std::string, DegreeFactor> kFactors{{"in_factor", DegreeFactor::kIn},
                                                   {"out_factor", DegreeFactor::kOut},
                                                   {"loop_factor", DegreeFactor::kLoop},
                                                   {"inverse_in_degree", DegreeFactor::kInverseIn}};

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

void LayerBuilder::declare(const std::string& name, const Place& place, Named named) {
  const bool taken = kRowNames.contains(name) || contains(kNumberNames, name) ||
                     name == layer_.in || name == layer_.out;
  const auto before = names_.find(name);
  if (taken || before != names_.end()) {
    refuse(source_, place, "a new name",
           taken ? fmt::format("{}, which stands for something already", name)
                 : fmt::format("{}, which line {} has already", name, before->second.place.line),
           "choose another one");
  }
  named.place = place;
  names_.emplace(name, std::move(named));
}

void LayerBuilder::bind(const std::vector<Binding>& bindings) {
  for (const Binding& binding : bindings) {
    Named named;
    named.value = evaluate(binding.value);
    named.where = where_;
    declare(binding.name, binding.place, named);
  }
}

// What nothing reads would be a parameter without a gradient, or a slip.
void LayerBuilder::check_used() const {
  for (const auto& [name, named] : names_) {
    if (named.used) continue;
    refuse(source_, named.place, fmt::format("a use of {}", name), "none", "leave it out");
  }
}

std::vector<std::string> LayerBuilder::known_names() const {
  std::vector<std::string> known{layer_.in, layer_.out};
  if (where_ == Where::kEdge) {
    known.insert(known.end(), {"src", "dst", "data"});
  } else {
    known.push_back("vertex");
    if (accum_ >= 0) known.push_back("accum");
  }
  for (const auto& [name, named] : names_) known.push_back(name);
  known.insert(known.end(), kNumberNames.begin(), kNumberNames.end());
  return known;
}

Value LayerBuilder::use(Named& named) {
  named.used = true;
  if (named.parameter != nullptr && named.value.kind != Kind::kParameter) {
    named.value = make_parameter(*named.parameter);
  }
  return named.value;
}

std::optional<double> LayerBuilder::number_of(const std::string& name) const {
  const ModelOptions& options = parts_.options();
  const auto number = [](std::int64_t count) { return static_cast<double>(count); };
  if (name == layer_.in) return number(setting_.in);
  if (name == layer_.out) return number(setting_.out);
  if (name == "heads") return number(setting_.heads);
  if (name == "merged") return number(setting_.merged());
  if (name == "layers") return number(options.layers);
  if (name == "hidden") return number(options.hidden);
  if (name == "types") return number(std::max<std::int64_t>(1, parts_.facts().edge_types));
  if (name == "edge_features") return number(parts_.facts().edge_features);
  if (name == "dropout") return options.dropout;
  if (name == "attn_dropout") return options.attn_dropout;
  return std::nullopt;
}

Value LayerBuilder::evaluate_name(const Expression& expression) {
  const std::string& name = expression.name;
  if (const std::optional<double> number = number_of(name)) return number_value(*number);
  const bool edges = where_ == Where::kEdge;
  if (edges && (name == "src" || name == "dst")) {
    return rows_value(parts_.graph(), on_edges(name, input_));
  }
  if (edges && name == "data") return edge_data("", expression.place);
  if (!edges && name == "vertex") return rows_value(parts_.graph(), input_);
  if (name == "accum" && accum_ >= 0 && !edges) return rows_value(parts_.graph(), accum_);
  const auto found = names_.find(name);
  if (found == names_.end()) {
    if (kRowNames.contains(name)) {
      refuse(source_, expression.place,
             edges ? "src, dst or data in the edge block"
                   : (layer_.gather ? "vertex or accum here" : "vertex in a layer without gather"),
             name, "the other end is seen from the other block");
    }
    refuse_name(source_, expression.place, "a name that is known here", name, known_names());
  }
  Named& named = found->second;
  if (in_size_ && named.parameter != nullptr) {
    refuse(source_, expression.place, "a number in a size", fmt::format("parameter {}", name),
           "sizes are of in, out, heads and other numbers");
  }
  const bool of_rows = named.parameter == nullptr && named.value.kind == Kind::kRows;
  if (of_rows && edges && named.where != Where::kEdge) {
    refuse(source_, expression.place, fmt::format("src.{0} or dst.{0}", name), name,
           "it has a row a vertex, an edge has two ends");
  }
  if (of_rows && !edges && named.where == Where::kEdge) {
    refuse(source_, expression.place, "a name of vertices", name,
           "what an edge computes comes here through gather only");
  }
  return use(named);
}

Value LayerBuilder::evaluate_member(const Expression& expression) {
  const std::string& name = expression.name;
  const std::string& member = expression.member;
  const bool edges = where_ == Where::kEdge;
  if (edges && name == "data") return edge_data(member, expression.place);
  const bool end = edges ? name == "src" || name == "dst" : name == "vertex";
  if (!end) {
    refuse_name(source_, expression.place, edges ? "src, dst or data before ." : "vertex before .",
                name,
                edges ? std::vector<std::string>{"src", "dst", "data"}
                      : std::vector<std::string>{"vertex"});
  }
  TensorId rows = -1;
  const auto found = names_.find(member);
  if (kFactors.contains(member)) {
    rows = parts_.degree_factor(kFactors.at(member), weighted_);
  } else if (found != names_.end() && found->second.where == Where::kLayer &&
             found->second.value.kind == Kind::kRows) {
    rows = use(found->second).tensor;
  } else {
    std::vector<std::string> known;
    for (const auto& [factor, meaning] : kFactors) known.push_back(factor);
    for (const auto& [other, named] : names_) {
      if (named.where == Where::kLayer && named.value.kind == Kind::kRows) known.push_back(other);
    }
    refuse_name(source_, expression.place, fmt::format("something {} has", name), member, known);
  }
  return rows_value(parts_.graph(), edges ? on_edges(name, rows) : rows);
}

TensorId LayerBuilder::on_edges(const std::string& end, TensorId rows) {
  const auto known = ends_.find({end, rows});
  if (known != ends_.end()) return known->second;
  TensorGraph& graph = parts_.graph();
  const TensorId edges =
      end == "src" ? graph.source(rows, loops_) : graph.destination(rows, loops_);
  ends_[{end, rows}] = edges;
  return edges;
}

Value LayerBuilder::edge_data(const std::string& member, const Place& place) {
  const GraphFacts& facts = parts_.facts();
  TensorGraph& graph = parts_.graph();
  const auto missing = [&](const char* what, const char* files) {
    throw DataError(fmt::format("{}: the program reads {}", place_text(source_, place),
                                member.empty() ? "data" : "data." + member),
                    fmt::format("the dataset's edges have no {}", what),
                    fmt::format("import it with {}, or use another program", files));
  };
  if (member.empty()) {
    if (facts.edge_features == 0) missing("features", "edge_features.*");
    return rows_value(
        graph, graph.edge_input(kEdgeFeaturesInput, facts.edge_features, graph.real(), loops_));
  }
  if (member == "weight") {
    if (!facts.edge_weights) missing("weights", "edge_weights.*");
    return rows_value(graph, graph.edge_input(kEdgeWeightsInput, 1, graph.real(), loops_));
  }
  if (member != "type") {
    refuse_name(source_, place, "something data has", member, {"weight", "type"});
  }
  Value value;
  value.kind = Kind::kTypes;
  if (facts.edge_types > 1) {
    value.tensor = graph.edge_input(kEdgeTypesInput, 1, DType::kI32, loops_);
  }
  return value;
}

}  // namespace ooc::saga
