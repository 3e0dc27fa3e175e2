#include "engine/model/saga/mentions.h"

#include <algorithm>

namespace ooc::saga {
namespace {

void collect(const Expression& expression, std::set<std::string>& names) {
  if (!expression.name.empty()) names.insert(expression.name);
  if (!expression.member.empty()) names.insert(expression.name + "." + expression.member);
  for (const Expression& child : expression.children) collect(child, names);
}

void collect(const Block& block, std::set<std::string>& names) {
  for (const Binding& binding : block.bindings) collect(binding.value, names);
  collect(block.result, names);
}

}  // namespace

std::set<std::string> mentions(const Program& program) {
  std::set<std::string> names;
  for (const Layer& layer : program.layers) {
    for (const Parameter& parameter : layer.parameters) {
      for (const Expression& size : parameter.sizes) collect(size, names);
    }
    for (const Binding& binding : layer.bindings) collect(binding.value, names);
    if (layer.edge) collect(*layer.edge, names);
    if (layer.gather) names.insert(layer.gather->fold);
    collect(layer.vertex, names);
  }
  return names;
}

bool says_heads(const Program& program) {
  const std::set<std::string> names = mentions(program);
  for (const char* name : {"heads", "merged", "merge_heads", "head_sum", "head_dot"}) {
    if (names.contains(name)) return true;
  }
  return false;
}

bool gathers_weighted(const Program& program) {
  return std::any_of(program.layers.begin(), program.layers.end(),
                     [](const Layer& layer) { return layer.gather && layer.gather->weights; });
}

bool says_data_weight(const Program& program) { return mentions(program).contains("data.weight"); }

}  // namespace ooc::saga
