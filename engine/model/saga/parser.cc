#include "engine/model/saga/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tao/pegtl/contrib/limit_depth.hpp>
#include <tao/pegtl/contrib/parse_tree.hpp>

#include "engine/model/saga/complaint.h"
#include "engine/model/saga/grammar.h"
#include "storage/base/errors.h"

namespace ooc::saga {
namespace {

namespace peg = tao::pegtl;
namespace tree = tao::pegtl::parse_tree;

template <class Rule>
struct action : peg::nothing<Rule> {};
template <>
struct action<grammar::sum> : peg::limit_depth<grammar::kMaxDepth> {};

struct Messages {
  template <class Rule>
  static constexpr const char* message = grammar::expected<Rule>;
  // Only where a rule must match.
  template <class Rule>
  static constexpr bool raise_on_failure = false;
};
template <class Rule>
using control = peg::must_if<Messages>::control<Rule>;

template <class Rule>
using selector = tree::selector<
    Rule,
    tree::store_content::on<
        grammar::identifier, grammar::number, grammar::minus, grammar::product_operator,
        grammar::sum_operator, grammar::call, grammar::member, grammar::variable, grammar::binding,
        grammar::initial_number, grammar::initial_name, grammar::sizes, grammar::parameter,
        grammar::edge_block, grammar::vertex_block, grammar::fold_name, grammar::score_name,
        grammar::word_loops, grammar::word_weights, grammar::gather, grammar::layer,
        grammar::input_line, grammar::times, grammar::word_shared, grammar::word_plain,
        grammar::stack_line, grammar::jumping_name, grammar::head_line, grammar::model>,
    tree::fold_one::on<grammar::sum, grammar::product>>;

using Node = tree::node;

Place place_of(const Node& node) {
  const peg::position at = node.begin();
  return {static_cast<int>(at.line), static_cast<int>(at.column)};
}

// The word or number of a leaf, without the blanks after it.
std::string text_of(const Node& node) {
  std::string text = node.string();
  return text.substr(0, text.find_first_of(" \t\r\n\v\f#"));
}

class Reader {
 public:
  explicit Reader(std::string source) : source_(std::move(source)) {}

  Program program(const Node& root) const {
    Program program;
    program.source = source_;
    for (const auto& node : root.children) {
      if (node->is_type<grammar::layer>()) {
        program.layers.push_back(layer(*node));
        continue;
      }
      if (program.model) {
        refuse(source_, place_of(*node), "one model block", "a second one", "leave one of them");
      }
      program.model = model(*node);
    }
    return program;
  }

 private:
  double number(const Node& node) const {
    const double value = std::strtod(text_of(node).c_str(), nullptr);
    if (std::isfinite(value)) return value;
    refuse(source_, place_of(node), "a number that a double holds", text_of(node));
  }

  Expression leaf(const Node& node) const {
    Expression expression;
    expression.place = place_of(node);
    if (node.is_type<grammar::number>()) {
      expression.number = number(node);
      return expression;
    }
    expression.name = text_of(*node.children[0]);
    expression.kind = Expression::Kind::kName;
    if (node.is_type<grammar::member>()) {
      expression.kind = Expression::Kind::kMember;
      expression.member = text_of(*node.children[1]);
    }
    if (node.is_type<grammar::call>()) {
      expression.kind = Expression::Kind::kCall;
      for (std::size_t i = 1; i < node.children.size(); ++i) {
        expression.children.push_back(this->expression(*node.children[i]));
      }
    }
    return expression;
  }

  // A sum or product: operands, each after any number of minus signs, with operators between.
  Expression chain(const Node& node) const {
    Expression chain;
    chain.kind = node.is_type<grammar::sum>() ? Expression::Kind::kSum : Expression::Kind::kProduct;
    chain.place = place_of(node);
    const Node* first_minus = nullptr;
    bool negative = false;
    for (const auto& child : node.children) {
      if (child->is_type<grammar::minus>()) {
        if (first_minus == nullptr) first_minus = child.get();
        negative = !negative;
      } else if (child->is_type<grammar::sum_operator>() ||
                 child->is_type<grammar::product_operator>()) {
        chain.operators += child->string_view().front();
      } else {
        Expression operand = expression(*child);
        if (negative) {
          Expression negated;
          negated.kind = Expression::Kind::kNegate;
          negated.place = place_of(*first_minus);
          negated.children.push_back(std::move(operand));
          operand = std::move(negated);
        }
        chain.children.push_back(std::move(operand));
        first_minus = nullptr;
        negative = false;
      }
    }
    if (chain.operators.empty()) return std::move(chain.children.front());
    return chain;
  }

  Expression expression(const Node& node) const {
    const bool is_chain = node.is_type<grammar::sum>() || node.is_type<grammar::product>();
    return is_chain ? chain(node) : leaf(node);
  }

  Binding binding(const Node& node) const {
    return {place_of(node), text_of(*node.children[0]), expression(*node.children[1])};
  }

  Parameter parameter(const Node& node) const {
    Parameter parameter;
    parameter.place = place_of(node);
    for (const auto& child : node.children) {
      if (child->is_type<grammar::identifier>()) parameter.name = text_of(*child);
      if (child->is_type<grammar::sizes>()) {
        for (const auto& size : child->children) parameter.sizes.push_back(expression(*size));
      }
      if (child->is_type<grammar::initial_number>()) parameter.constant = number(*child);
      if (child->is_type<grammar::initial_name>()) {
        const std::string name = text_of(*child);
        if (name == "glorot") parameter.initial = name;
        if (name == "zeros") parameter.constant = 0;
        if (name == "ones") parameter.constant = 1;
      }
    }
    return parameter;
  }

  Block block(const Node& node) const {
    Block block;
    for (const auto& child : node.children) {
      if (child->is_type<grammar::binding>()) {
        block.bindings.push_back(binding(*child));
      } else {
        block.result = expression(*child);
      }
    }
    return block;
  }

  Gather gather(const Node& node) const {
    Gather gather;
    gather.place = place_of(node);
    for (const auto& child : node.children) {
      if (child->is_type<grammar::fold_name>()) gather.fold = text_of(*child);
      if (child->is_type<grammar::word_loops>()) gather.loops = true;
      if (child->is_type<grammar::word_weights>()) gather.weights = true;
      if (child->is_type<grammar::score_name>()) {
        gather.fold = "softmax";
        gather.score = text_of(*child->children[0]);
        gather.score_place = place_of(*child);
      }
    }
    return gather;
  }

  Layer layer(const Node& node) const {
    Layer layer;
    std::vector<std::string> names;
    for (const auto& child : node.children) {
      if (child->is_type<grammar::identifier>()) {
        if (names.empty()) layer.place = place_of(*child);
        names.push_back(text_of(*child));
      }
      if (child->is_type<grammar::parameter>()) layer.parameters.push_back(parameter(*child));
      if (child->is_type<grammar::binding>()) layer.bindings.push_back(binding(*child));
      if (child->is_type<grammar::edge_block>()) layer.edge = block(*child);
      if (child->is_type<grammar::gather>()) layer.gather = gather(*child);
      if (child->is_type<grammar::vertex_block>()) layer.vertex = block(*child);
    }
    layer.name = names.at(0);
    layer.in = names.at(1);
    layer.out = names.at(2);
    return layer;
  }

  Stack stack(const Node& node) const {
    Stack stack;
    for (const auto& child : node.children) {
      if (child->is_type<grammar::identifier>()) {
        stack.place = place_of(*child);
        stack.layer = text_of(*child);
      }
      if (child->is_type<grammar::times>()) stack.times = expression(*child->children[0]);
      if (child->is_type<grammar::word_shared>()) stack.shared = true;
      if (child->is_type<grammar::word_plain>()) stack.plain = true;
    }
    return stack;
  }

  ModelBlock model(const Node& node) const {
    ModelBlock model;
    model.place = place_of(node);
    for (const auto& child : node.children) {
      if (child->is_type<grammar::input_line>()) model.input_linear = true;
      if (child->is_type<grammar::stack_line>()) model.stacks.push_back(stack(*child));
      if (child->is_type<grammar::jumping_name>()) model.jumping = text_of(*child);
      if (child->is_type<grammar::head_line>()) model.head_linear = true;
    }
    return model;
  }

  std::string source_;
};

// What stands at an offset, as a message says it: a word, a number, a sign.
std::string found_at(std::string_view text, std::size_t offset) {
  if (offset >= text.size()) return "the end of the program";
  const auto in_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  const std::string_view rest = text.substr(offset);
  const auto end = std::find_if_not(rest.begin(), rest.end(), in_word);
  const auto length = static_cast<std::size_t>(end - rest.begin());
  if (length > 0) return std::string(rest.substr(0, std::min<std::size_t>(length, 40)));
  if (rest[0] == '\n' || rest[0] == '\r') return "the end of the line";
  if (rest[0] == ' ' || rest[0] == '\t') return "a blank";
  if (rest[0] > ' ' && rest[0] < 127) return std::string(rest.substr(0, 1));
  return fmt::format("byte 0x{:02x}", static_cast<unsigned char>(rest[0]));
}

}  // namespace

Program parse(std::string_view text, const std::string& source) {
  if (text.size() > kMaxProgramBytes) {
    throw UsageError(fmt::format("a program of {} bytes", text.size()), source,
                     fmt::format("a program has at most {}", kMaxProgramBytes));
  }
  if (text.find('\0') != std::string_view::npos) {
    throw UsageError("a program with a zero byte in it", source, "give it as plain text");
  }
  peg::memory_input<> input(text.data(), text.size(), source);
  try {
    const auto root = tree::parse<grammar::file, selector, action, control>(input);
    OOC_CHECK(root != nullptr);
    return Reader(source).program(*root);
  } catch (const peg::parse_error& error) {
    const peg::position& at = error.positions().front();
    const Place place{static_cast<int>(at.line), static_cast<int>(at.column)};
    const std::string message(error.message());
    if (message.starts_with("maximum")) {
      refuse(source, place,
             fmt::format("at most {} brackets inside each other", grammar::kMaxDepth), "one more",
             "name a part of it");
    }
    refuse(source, place, message, found_at(text, at.byte));
  }
}

}  // namespace ooc::saga
