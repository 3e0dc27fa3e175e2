#include <catch2/catch.hpp>

#include "engine/model/saga/parser.h"
#include "engine/model/saga/stack.h"
#include "storage/base/errors.h"

using namespace ooc;
using saga::Expression;

namespace {

constexpr const char* kHint = "; ooc-inspect --model gcn prints a program that is right";

std::string complaint_about(const std::string& text) {
  try {
    saga::units_of(saga::parse(text, "mine.saga"), 2);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "none";
}

// A layer around the parts that a test is about; they start in column 1 of line 2.
std::string layer_of(const std::string& parts) { return "layer x(in, out) {\n" + parts + "\n}\n"; }

}  // namespace

TEST_CASE("saga: a layer is read as it is written") {
  const saga::Program program = saga::parse(
      "# a comment\nlayer gat(in, out) {\n"
      "  param weight[in, heads * out], scale = 0.5, bias[out] = ones\n"
      "  h = vertex@weight  slope=0.2\n"
      "  edge { z = src.h  return -z * 2 / 4 + leaky_relu(dst.h, slope) }\n"
      "  gather softmax(z) with loops  # another\n"
      "  vertex { return act(accum) }\n}",
      "mine.saga");
  REQUIRE(program.layers.size() == 1);
  const saga::Layer& layer = program.layers[0];
  CHECK(layer.name == "gat");
  CHECK(layer.place.line == 2);
  CHECK(layer.in + " " + layer.out == "in out");
  REQUIRE(layer.parameters.size() == 3);
  CHECK(layer.parameters[0].sizes.size() == 2);
  CHECK(layer.parameters[0].sizes[1].operators == "*");
  CHECK(layer.parameters[1].sizes.empty());
  CHECK(layer.parameters[1].constant == 0.5);
  CHECK(layer.parameters[2].constant == 1);
  REQUIRE(layer.bindings.size() == 2);
  CHECK(layer.bindings[0].value.kind == Expression::Kind::kProduct);
  CHECK(layer.bindings[1].value.number == 0.2);
  REQUIRE(layer.edge);
  const Expression& result = layer.edge->result;
  REQUIRE(result.kind == Expression::Kind::kSum);
  CHECK(result.children[0].operators == "*/");
  CHECK(result.children[0].children[0].kind == Expression::Kind::kNegate);
  CHECK(result.children[1].name == "leaky_relu");
  CHECK(result.children[1].children[0].member == "h");
  CHECK(result.children[1].place.line == 5);
  CHECK(result.children[1].place.column == 41);
  CHECK(layer.gather->fold == "softmax");
  CHECK(layer.gather->score == "z");
  CHECK(layer.gather->loops);
  CHECK(layer.vertex.result.name == "act");
}

TEST_CASE("saga: a gather says loops, weights or both, in this order") {
  const auto gather = [](const std::string& with) {
    return *saga::parse(layer_of("gather sum " + with + " vertex { return accum }"), "mine.saga")
                .layers[0]
                .gather;
  };
  CHECK_FALSE(gather("").weights);
  CHECK(gather("with weights").weights);
  CHECK_FALSE(gather("with weights").loops);
  CHECK_FALSE(gather("with loops").weights);
  CHECK(gather("with loops and weights").weights);
  CHECK(gather("with loops and weights").loops);
  const auto complaint = [](const std::string& with) {
    return complaint_about(layer_of("gather sum with " + with + " vertex { return accum }"));
  };
  CHECK(complaint("wieghts") ==
        std::string("mine.saga:2:17: expected loops or weights, found wieghts") + kHint);
  CHECK(complaint("loops and vertex") ==
        std::string("mine.saga:2:27: expected weights, found vertex") + kHint);
}

TEST_CASE("saga: a model block says the stack") {
  const saga::Program program = saga::parse(
      "layer a(in, out) { vertex { return vertex } } layer b(in, out) { vertex { return vertex } }"
      "model { input linear stack a stack b times 2 * layers - 1 shared stack a times 1 plain "
      "jumping cat head linear }",
      "mine.saga");
  CHECK(program.model->input_linear);
  CHECK(program.model->head_linear);
  CHECK(program.model->jumping == "cat");
  const std::vector<saga::Unit> units = saga::units_of(program, 3);
  REQUIRE(units.size() == 5);
  CHECK(units[0].layer->name == "a");
  CHECK(units[3].layer->name == "b");
  CHECK(units[3].steps == 5);
  CHECK_FALSE(units[3].plain);
  CHECK(units[4].plain);
}

TEST_CASE("saga: operators have the usual precedence, minus signs add up") {
  const saga::Program program =
      saga::parse(layer_of("vertex { return 1 + 2 * --3 - (4 - 5) }"), "mine.saga");
  const Expression& sum = program.layers[0].vertex.result;
  REQUIRE(sum.kind == Expression::Kind::kSum);
  CHECK(sum.operators == "+-");
  CHECK(sum.children[1].operators == "*");
  CHECK(sum.children[1].children[1].number == 3);
  CHECK(sum.children[2].operators == "-");
}

TEST_CASE("saga: a slip in the text names line, column, what was expected and what was found") {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "1:1: expected layer, found the end of the program"},
      {"layr x", "1:1: expected layer, found layr"},
      {"layer (in, out) {}", "1:7: expected a name of a layer, found ("},
      {"layer gather(in, out) {}", "1:7: expected a name of a layer, found gather"},
      {"layer x[in, out] {}", "1:8: expected (, found ["},
      {"layer x(in) {}", "1:11: expected ,, found )"},
      {"layer x(in, ) {}", "1:13: expected a name for a width, found )"},
      {"layer x(in, out) vertex", "1:18: expected {, found vertex"},
      {layer_of("parm w[in]"),
       "2:1: expected param, a binding (name = ...), edge, gather or vertex, found parm"},
      {layer_of("param w[in, out"), "3:1: expected , or ], found }"},
      {layer_of("param w[]"), "2:9: expected a size, found ]"},
      {layer_of("param w = some"), "2:11: expected glorot, zeros, ones or a number, found some"},
      {layer_of("param 2"), "2:7: expected a name for a parameter, found 2"},
      {layer_of("h = "), "3:1: expected an expression, found }"},
      {layer_of("edge { return src @ }"), "2:21: expected an expression, found }"},
      {layer_of("edge { return src } vertex"), "2:21: expected gather, found vertex"},
      {layer_of("gather average"),
       "2:8: expected sum, mean, max, min, aggr or softmax(...), found average"},
      {layer_of("gather softmax score"), "2:16: expected (, found score"},
      {layer_of("gather softmax(2)"), "2:16: expected a name of the edge block, found 2"},
      {layer_of("gather sum with loop"), "2:17: expected loops or weights, found loop"},
      {layer_of("gather sum edge"), "2:12: expected vertex, found edge"},
      {layer_of("vertex { h = vertex }"),
       "2:21: expected return or a binding (name = ...), found }"},
      {layer_of("vertex { return (vertex }"), "2:25: expected an operator or ), found }"},
      {layer_of("vertex { return vertex vertex }"),
       "2:24: expected an operator or }, found vertex"},
      {layer_of("vertex { return vertex. }"), "2:25: expected a name, found }"},
      {layer_of("vertex { return act() }"), "2:21: expected an expression, found )"},
      {layer_of("vertex { return 1. }"), "2:19: expected a digit, found a blank"},
      {layer_of("vertex { return 2x }"), "2:17: expected an expression, found 2x"},
      {layer_of("vertex { return 1e999 }"),
       "2:17: expected a number that a double holds, found 1e999"},
      {layer_of("vertex { return \xc3\xa4 }"), "2:17: expected an expression, found byte 0xc3"},
      {layer_of("vertex { return vertex } }"), "3:1: expected layer or model, found }"},
  };
  for (const auto& [text, message] : cases) {
    INFO(text);
    CHECK(complaint_about(text) == "mine.saga:" + message + kHint);
  }
}

TEST_CASE("saga: a wrong model block names line, column, what was expected and what was found") {
  const std::string layer = "layer x(in, out) { vertex { return vertex } }\n";
  const std::string hint = kHint;
  const std::vector<std::pair<std::string, std::string>> cases{
      {"model { }", "2:9: expected stack, found }" + hint},
      {"model { input affine }", "2:15: expected linear, found affine" + hint},
      {"model { stack }", "2:15: expected a name of a layer, found }" + hint},
      {"model { stack x jumping mean }", "2:25: expected none, sum, cat or max, found mean" + hint},
      {"model { stack x loops }",
       "2:17: expected a further line of the model or }, found loops" + hint},
      {"model { stack y }", "2:15: expected a layer of this program, found y; did you mean x?"},
      {"model { stack x times depth }",
       "2:23: expected a number, or layers, found depth; layers is what --layers says"},
      {"model { stack x times 1 / 0 }",
       "2:23: expected a whole number from 1 to 1000, found inf; it says how often the layer is "
       "stacked"},
      {"model { stack x times 1000 stack x }",
       "2:34: expected at most 1000 layers, found 1002; stack fewer"},
      {"model { stack x } model { stack x }",
       "2:19: expected one model block, found a second one; leave one of them"},
      {layer,
       "2:7: expected a new name of a layer, found x, which line 1 has already; choose "
       "another one"},
      {"layer y(in, out) { vertex { return vertex } }",
       "2:7: expected one layer, or a model block after them, found 2 layers; say in which order "
       "they come: model { stack ... }"},
      {"layer y(in, out) { vertex { return vertex } } model { stack x }",
       "2:7: expected a stack of y in the model block, found none; leave the layer out or stack "
       "it"},
  };
  for (const auto& [text, message] : cases) {
    INFO(text);
    CHECK(complaint_about(layer + text) == "mine.saga:" + message);
  }
}

TEST_CASE("saga: what is too deep, too long or no text is refused") {
  const std::string deep(70, '('), close(70, ')');
  CHECK(complaint_about(layer_of("vertex { return " + deep + "1" + close + " }")) ==
        "mine.saga:2:81: expected at most 64 brackets inside each other, found one more; name a "
        "part of it");
  CHECK(complaint_about(std::string(saga::kMaxProgramBytes + 1, '#')) ==
        "a program of 32769 bytes, mine.saga; a program has at most 32768");
  CHECK(complaint_about(std::string("# \0", 3)) ==
        "a program with a zero byte in it, mine.saga; give it as plain text");
  // A long chain is no deep one.
  std::string chain = "1";
  for (int i = 0; i < 8000; ++i) chain += " + 1";
  CHECK(complaint_about(layer_of("vertex { return " + chain + " }")) == "none");
}
