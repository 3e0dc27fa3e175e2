// A program as it was written: what the parser makes of the text. Names and shapes are not checked
// here (engine/model/saga/layer_builder.h does that).
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace ooc::saga {

struct Place {
  int line = 1;
  int column = 1;  // in bytes
};

struct Expression {
  enum class Kind {
    kNumber,
    kName,     // weight
    kMember,   // src.in_factor: name.member
    kCall,     // name(children)
    kNegate,   // - children[0]
    kSum,      // children, with operators between them: + or -
    kProduct,  // the same with *, / or @
  };
  Kind kind = Kind::kNumber;
  Place place;
  std::string name;
  std::string member;
  double number = 0;
  std::string operators;  // operators[i] stands before children[i + 1]
  std::vector<Expression> children;
};

struct Binding {  // name = value
  Place place;
  std::string name;
  Expression value;
};

struct Block {
  std::vector<Binding> bindings;
  Expression result;
};

struct Parameter {
  Place place;
  std::string name;
  std::vector<Expression> sizes;   // none: a number that is learnt
  std::string initial;             // "glorot" or empty: by its shape, where `constant` is empty
  std::optional<double> constant;  // what every element starts at
};

struct Gather {
  Place place;
  std::string fold;  // sum, mean, max, min, aggr or softmax
  std::string score;
  Place score_place;
  bool loops = false;
  bool weights = false;
};

struct Layer {
  Place place;
  std::string name;
  std::string in, out;  // what it calls its widths
  std::vector<Parameter> parameters;
  std::vector<Binding> bindings;
  std::optional<Block> edge;
  std::optional<Gather> gather;
  Block vertex;
};

struct Stack {
  Place place;
  std::string layer;
  std::optional<Expression> times;  // empty: --layers
  bool shared = false;              // the same parameters at every step
  bool plain = false;               // nothing between the layers nor after them
};

struct ModelBlock {
  Place place;
  bool input_linear = false;
  std::vector<Stack> stacks;
  std::string jumping;  // empty: as the option says
  bool head_linear = false;
};

struct Program {
  std::string source;  // what messages call it: mine.saga
  std::vector<Layer> layers;
  std::optional<ModelBlock> model;
};

}  // namespace ooc::saga
