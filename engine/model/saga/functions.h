// The functions that expressions may call, in one table.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/model/parts/parts.h"
#include "engine/model/saga/value.h"

namespace ooc::saga {

// What a layer is built for.
struct LayerSetting {
  std::string prefix;  // of its parameters' names: "layer2"
  std::int64_t in = 0;
  std::int64_t out = 0;
  std::int64_t heads = 1;
  bool last = false;   // it makes the classes: no activation, heads are averaged
  bool biased = true;  // false: a batch norm follows, whose beta is the bias

  // Columns of `heads` heads of width `out` once merge_heads() has merged them.
  std::int64_t merged() const { return last ? out : heads * out; }
};

// One call: its arguments are evaluated.
struct Call {
  ModelParts& parts;
  const std::string& source;
  const LayerSetting& setting;
  bool on_edges;
  const Expression& expression;
  std::vector<Value> arguments;
  // Prefix of parameters the function brings along: "layer2.batch_norm", then "layer2.batch_norm2".
  std::string own_name;
};

struct Function {
  std::size_t least = 1, most = 1;  // arguments
  Value (*apply)(Call& call) = nullptr;
  bool activation = false;  // may be a layer's activation, when it is the last thing it does
  bool owns = false;        // brings parameters along
};

const std::map<std::string, Function>& functions();

}  // namespace ooc::saga
