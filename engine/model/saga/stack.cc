#include "engine/model/saga/stack.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "engine/model/parts/model.h"
#include "engine/model/saga/complaint.h"

namespace ooc::saga {
namespace {

// How often: numbers and `layers` only.
double number(const Program& program, const Expression& expression, std::int64_t layers) {
  switch (expression.kind) {
    case Expression::Kind::kNumber:
      return expression.number;
    case Expression::Kind::kName:
      if (expression.name == "layers") return static_cast<double>(layers);
      break;
    case Expression::Kind::kNegate:
      return -number(program, expression.children[0], layers);
    case Expression::Kind::kSum:
    case Expression::Kind::kProduct: {
      double value = number(program, expression.children[0], layers);
      for (std::size_t i = 1; i < expression.children.size(); ++i) {
        const double right = number(program, expression.children[i], layers);
        const char op = expression.operators[i - 1];
        if (op == '+') value += right;
        if (op == '-') value -= right;
        if (op == '*') value *= right;
        if (op == '/') value /= right;
        if (op == '@') value = NAN;
      }
      return value;
    }
    default:
      break;
  }
  refuse(program.source, expression.place, "a number, or layers",
         expression.name.empty() ? "something else" : expression.name,
         "layers is what --layers says");
}

std::int64_t times_of(const Program& program, const Stack& stack, std::int64_t layers) {
  if (!stack.times) return layers;
  const double value = number(program, *stack.times, layers);
  if (value == std::floor(value) && value >= 1 && value <= static_cast<double>(kMaxLayers)) {
    return static_cast<std::int64_t>(value);
  }
  refuse(program.source, stack.times->place, fmt::format("a whole number from 1 to {}", kMaxLayers),
         fmt::format("{}", value), "it says how often the layer is stacked");
}

const Layer& layer_named(const Program& program, const Stack& stack) {
  std::vector<std::string> names;
  for (const Layer& layer : program.layers) {
    if (layer.name == stack.layer) return layer;
    names.push_back(layer.name);
  }
  refuse_name(program.source, stack.place, "a layer of this program", stack.layer, names);
}

void check_names(const Program& program) {
  for (std::size_t i = 0; i < program.layers.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (program.layers[i].name != program.layers[j].name) continue;
      refuse(program.source, program.layers[i].place, "a new name of a layer",
             fmt::format("{}, which line {} has already", program.layers[i].name,
                         program.layers[j].place.line),
             "choose another one");
    }
  }
}

}  // namespace

std::vector<Unit> units_of(const Program& program, std::int64_t layers) {
  check_names(program);
  std::vector<Unit> units;
  if (!program.model) {
    if (program.layers.size() > 1) {
      refuse(program.source, program.layers[1].place, "one layer, or a model block after them",
             fmt::format("{} layers", program.layers.size()),
             "say in which order they come: model { stack ... }");
    }
    const Layer& layer = program.layers.front();
    units.resize(static_cast<std::size_t>(layers), {&layer, layer.place, 1, false});
    return units;
  }
  for (const Stack& stack : program.model->stacks) {
    const Layer& layer = layer_named(program, stack);
    const std::int64_t times = times_of(program, stack, layers);
    const std::int64_t steps = stack.shared ? times : 1;
    units.insert(units.end(), static_cast<std::size_t>(times / steps),
                 {&layer, stack.place, steps, stack.plain});
    if (units.size() > kMaxLayers) {
      refuse(program.source, stack.place, fmt::format("at most {} layers", kMaxLayers),
             fmt::format("{}", units.size()), "stack fewer");
    }
  }
  for (const Layer& layer : program.layers) {
    const auto uses = [&](const Stack& stack) { return stack.layer == layer.name; };
    const std::vector<Stack>& stacks = program.model->stacks;
    if (std::any_of(stacks.begin(), stacks.end(), uses)) continue;
    refuse(program.source, layer.place, fmt::format("a stack of {} in the model block", layer.name),
           "none", "leave the layer out or stack it");
  }
  return units;
}

}  // namespace ooc::saga
