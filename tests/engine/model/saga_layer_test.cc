#include <algorithm>
#include <catch2/catch.hpp>

#include "engine/graph/edge_operators.h"
#include "engine/graph/operators.h"
#include "engine/model/build.h"
#include "engine/model/library.h"
#include "storage/base/errors.h"

using namespace ooc;

namespace {

GraphFacts facts() { return {100, 8, 3, 40, 2, 4, true}; }

std::int64_t heads_of(const std::string& program) {
  try {
    return default_heads(program, "mine.saga") == 1 ? 1 : 4;
  } catch (const UsageError&) {
    return 1;
  }
}

Model build(const std::string& program, ModelOptions options = {}) {
  options.model = "mine.saga";
  options.program = program;
  options.hidden = 16;
  if (options.heads == 1) options.heads = heads_of(program);
  return build_model(options, facts(), Mode::kTrain, DType::kF32);
}

std::string complaint_about(const std::string& program, const ModelOptions& options = {}) {
  try {
    build(program, options);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "none";
}

std::string layer_of(const std::string& parts) { return "layer x(in, out) {\n" + parts + "\n}\n"; }

std::vector<std::string> names_of(const Model& model) {
  std::vector<std::string> names;
  for (const ModelParameter& parameter : model.parameters) names.push_back(parameter.name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

TEST_CASE("saga: shapes that don't fit are refused with both of them") {
  const std::string linear = "vertex { return vertex @ w }";
  const std::vector<std::pair<std::string, std::string>> cases{
      {"param w[out, in] vertex { return vertex @ w }",
       "2:43: expected a parameter of 8 rows right of @, found w [16, 8]; left of @ stands 8 "
       "columns"},
      {"param w[in, out]\nvertex { return vertex + vertex @ w }",
       "3:26: expected 8 columns, 1 column or a parameter [8], found 16 columns; left of + stands "
       "8 columns"},
      {"param b[out]\nvertex { return vertex * b }",
       "3:26: expected 8 columns, 1 column or a parameter [8], found b [16]; left of * stands 8 "
       "columns"},
      {"param b[in]\nvertex { return b + b + vertex }",
       "3:21: expected rows on one side at least, found b [8]; left of + stands b [8]"},
      {"param w[in, out]\nvertex { return w @ vertex }",
       "3:21: expected rows left of @, found 8 columns; left of @ stands w [8, 16]"},
      {"vertex { return vertex / vertex }",
       "2:26: expected a number right of /, found 8 columns; left of / stands 8 columns"},
      {"vertex { return vertex * (1 / 0) }",
       "2:31: expected a number that 1 / leaves finite, found 0; no number is larger than 1.8e308, "
       "none is divided by 0"},
      {"param w[in]\nvertex { return -w + vertex }",
       "3:17: expected rows or a number after -, found w [8]; take the parameter away from rows"},
      {"vertex { return 2 }",
       "2:17: expected rows of vertices, found the number 2; compute it from src, dst, data, "
       "vertex or accum"},
      {"edge { return heads } gather sum vertex { return accum }",
       "2:15: expected rows of edges, found the number 4; compute it from src, dst, data, vertex "
       "or accum"},
      {"param w[in, out / 3]\n" + linear,
       "2:13: expected a whole number from 1 to 1048576, found the number 5.333333333333333; sizes "
       "are of in, out, heads and other numbers"},
      {"param w[in * 100000, out * 100000]\n" + linear,
       "2:22: expected a whole number from 1 to 1048576, found the number 1600000; sizes are of "
       "in, "
       "out, heads and other numbers"},
      {"param w[in * 100000, out * 6000]\n" + linear,
       "2:7: expected at most 2147483648 elements, found w [800000, 96000]; make it smaller"},
      {"vertex { return concat(vertex, 2) }",
       "2:32: expected rows in concat(...), found the number 2; ooc-inspect --model gcn prints a "
       "program that is right"},
      {"vertex { return columns(vertex, 6, 3) }",
       "2:36: expected a whole number from 1 to 2 in columns(...), found the number 3; ooc-inspect "
       "--model gcn prints a program that is right"},
      {"vertex { return dropout(vertex, 1) }",
       "2:33: expected a probability below 1 in dropout(...), found the number 1; ooc-inspect "
       "--model gcn prints a program that is right"},
      {"param w[in, 3]\nvertex { return head_sum(vertex @ w) }",
       "3:26: expected columns for 4 heads in head_sum(...), found 3 columns; ooc-inspect --model "
       "gcn prints a program that is right"},
      {"vertex { return gru(vertex, vertex, vertex) }",
       "2:21: expected 24 columns in gru(...), found 8 columns; ooc-inspect --model gcn prints a "
       "program that is right"},
      {"param w[in, w] vertex { return vertex @ w }",
       "2:13: expected a number in a size, found parameter w; sizes are of in, out, heads and "
       "other numbers"},
      {"edge { s = src return src } gather sum vertex { return accum }",
       "2:8: expected a use of s, found none; leave it out"},
  };
  for (const auto& [parts, message] : cases) {
    INFO(parts);
    CHECK(complaint_about(layer_of(parts)) == "mine.saga:" + message);
  }
}

TEST_CASE("saga: names that stand for nothing are refused with near ones") {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"param weight[in, out] vertex { return vertex @ weigth }",
       "2:48: expected a name that is known here, found weigth; did you mean weight?"},
      {"vertex { return relo(vertex) }",
       "2:17: expected a function, found relo; did you mean relu?"},
      {"vertex { return leaky_relu(vertex) }",
       "2:17: expected 2 arguments of leaky_relu, found 1; engine/model/saga/README.md lists the "
       "functions"},
      {"vertex { return relu(vertex, 2) }",
       "2:17: expected 1 argument of relu, found 2; engine/model/saga/README.md lists the "
       "functions"},
      {"vertex { return vertex * vertex.in_facto }",
       "2:26: expected something vertex has, found in_facto; did you mean in_factor?"},
      {"vertex { return accum }",
       "2:17: expected vertex in a layer without gather, found accum; the other end is seen from "
       "the other block"},
      {"edge { return vertex } gather sum vertex { return accum }",
       "2:15: expected src, dst or data in the edge block, found vertex; the other end is seen "
       "from the other block"},
      {"h = vertex edge { return h } gather sum vertex { return accum }",
       "2:26: expected src.h or dst.h, found h; it has a row a vertex, an edge has two ends"},
      {"edge { z = src return z } gather sum vertex { return accum + z }",
       "2:62: expected a name of vertices, found z; what an edge computes comes here through "
       "gather only"},
      {"edge { return src * vertex.in_factor } gather sum vertex { return accum }",
       "2:21: expected src, dst or data before ., found vertex; known here: src, dst, data"},
      {"edge { return data.wight * src } gather sum vertex { return accum }",
       "2:15: expected something data has, found wight; did you mean weight?"},
      {"h = vertex h = vertex vertex { return h }",
       "2:12: expected a new name, found h, which line 2 has already; choose another one"},
      {"heads = 2 vertex { return vertex }",
       "2:1: expected a new name, found heads, which stands for something already; choose another "
       "one"},
      {"param unused[in] vertex { return vertex }",
       "2:7: expected a use of unused, found none; leave it out"},
      {"edge { return edge_dropout(data.type, 0.5) } gather sum vertex { return accum }",
       "2:28: expected rows in edge_dropout(...), found data.type; ooc-inspect --model gcn prints "
       "a program that is right"},
      {"edge { return src * data.type } gather sum vertex { return accum }",
       "2:21: expected rows, a parameter or a number (data.type is for pick_type), found "
       "data.type; "
       "left of * stands 8 columns"},
      {"edge { return batch_norm(src) } gather sum vertex { return accum }",
       "2:15: expected a function of edges, found batch_norm; it works on vertices only"},
      {"edge { return dropout(src, 0.1) } gather sum vertex { return accum }",
       "2:15: expected edge_dropout on edges, found dropout; dropout is for vertices"},
  };
  for (const auto& [parts, message] : cases) {
    INFO(parts);
    CHECK(complaint_about(layer_of(parts)) == "mine.saga:" + message);
  }
}

TEST_CASE("saga: what the stack cannot do with a program is refused") {
  const std::string narrow = layer_of("vertex { return vertex }");
  CHECK(complaint_about(narrow) ==
        "mine.saga:1:7: expected 3 columns, the classes, from the last layer, found 8; return what "
        "is `out` wide, or say head linear");
  const std::string wide = layer_of("param w[in, out] vertex { return vertex @ w }");
  CHECK(complaint_about(wide + "model { stack x shared head linear }") ==
        "mine.saga:4:15: expected shared layers as wide as their input, found 16 columns from 8; "
        "begin the model with input linear, or leave out shared");
  CHECK(complaint_about(wide + "model { stack x shared }") ==
        "mine.saga:4:15: expected head linear after shared layers, found no head; shared layers "
        "are all as wide as their input");
  ModelOptions options;
  options.norm = Norm::kBatch;
  CHECK(complaint_about(wide + "model { stack x plain }", options) ==
        "--norm, the layers of mine.saga are plain; leave it out");
  options = {};
  options.jumping = Jumping::kSum;
  CHECK(complaint_about(wide + "model { stack x jumping cat }", options) ==
        "--jumping sum, mine.saga says jumping cat; leave it out");
  const std::string deaf = layer_of("param w[1, out] vertex { return vertex.in_factor @ w }");
  CHECK(complaint_about(wide +
                        "layer y(in, out) { param w[1, out] vertex { return "
                        "vertex.in_factor @ w } } model { stack x times 1 stack y times 1 }") ==
        "layer1.w does not reach the loss, mine.saga; a layer has to return something made of its "
        "input");
  CHECK(complaint_about(layer_of("vertex { return columns(vertex, 0, 3) }")) ==
        "a program without parameters, mine.saga; there is nothing to train: add head linear or a "
        "param");
  CHECK(complaint_about(deaf) ==
        "layer1.w does not reach the loss, mine.saga; a layer has to "
        "return something made of its input");
}

TEST_CASE("saga: an option that a program does not read is refused") {
  const std::string linear = layer_of("param w[in, out] vertex { return vertex @ w }");
  const auto complaint = [&](auto change) {
    ModelOptions changed;
    change(changed);
    return complaint_about(linear, changed);
  };
  const std::string rest = " would do nothing, mine.saga does not read it; leave it out";
  CHECK(complaint([](ModelOptions& o) { o.heads = 2; }) == "--heads" + rest);
  CHECK(complaint([](ModelOptions& o) { o.out_heads = 2; }) == "--out-heads" + rest);
  CHECK(complaint([](ModelOptions& o) { o.activation = Activation::kElu; }) ==
        "--activation" + rest);
  CHECK(complaint([](ModelOptions& o) { o.aggr = Aggregation::kMax; }) == "--aggr" + rest);
  CHECK(complaint([](ModelOptions& o) { o.attn_dropout = 0.1; }) == "--attn-dropout" + rest);
}

TEST_CASE("saga: edges without the data a program reads are bad data, not a bad program") {
  ModelOptions options;
  options.model = "mine.saga";
  GraphFacts bare = facts();
  bare.edge_types = bare.edge_features = 0;
  bare.edge_weights = false;
  for (const auto& [read, message] :
       {std::pair("data.weight * src",
                  "mine.saga:2:15: the program reads data.weight, the "
                  "dataset's edges have no weights; import it with "
                  "edge_weights.*, or use another program"),
        {"data",
         "mine.saga:2:15: the program reads data, the dataset's edges have no features; "
         "import it with edge_features.*, or use another program"}}) {
    options.program =
        layer_of(std::string("edge { return ") + read + " } gather sum vertex { return accum }");
    CHECK_THROWS_AS(build_model(options, bare, Mode::kTrain, DType::kF32), DataError);
    CHECK_THROWS_WITH(build_model(options, bare, Mode::kTrain, DType::kF32), message);
  }
}

TEST_CASE("saga: parameters are called layer by layer, shared ones once") {
  const std::string layer = layer_of("param w[in, in] vertex { return act(vertex @ w) }");
  CHECK(names_of(build(layer + "model { input linear stack x head linear }")) ==
        std::vector<std::string>{"head.bias", "head.weight", "input.bias", "input.weight",
                                 "layer1.w", "layer2.w"});
  CHECK(names_of(build(layer + "model { stack x shared head linear }")) ==
        std::vector<std::string>{"head.bias", "head.weight", "layer1.w"});
}

TEST_CASE("saga: a bias that ends a layer goes where batch norm brings its own") {
  const std::string layer =
      layer_of("param w[in, out], b[out] vertex { return act(vertex @ w + b) }");
  ModelOptions options;
  options.norm = Norm::kBatch;
  const std::vector<std::string> names = names_of(build(layer, options));
  CHECK(std::count(names.begin(), names.end(), "layer1.b") == 0);
  CHECK(std::count(names.begin(), names.end(), "layer2.b") == 1);
  options.norm = Norm::kLayer;
  const std::vector<std::string> with_layer_norm = names_of(build(layer, options));
  CHECK(std::count(with_layer_norm.begin(), with_layer_norm.end(), "layer1.b") == 1);
}

TEST_CASE("saga: the activation a layer ends with is left out of the last one, others stay") {
  const auto relus = [](const Model& model) {
    const auto& operations = model.graph.operations();
    return std::count_if(operations.begin(), operations.end(), [&](const Operation& operation) {
      return model.graph.tensor(operation.output).name.starts_with("relu.");
    });
  };
  CHECK(relus(build(layer_of("param w[in, out] vertex { return act(act(vertex) @ w) }"))) == 3);
}

TEST_CASE("saga: initial values are by shape where the program doesn't say") {
  const Model model = build(layer_of(
      "param a[in, out], b[out], c[out] = ones, d[out] = glorot, e[in, out] = zeros, f = -0.5\n"
      "vertex { return (vertex @ a + b) * c * d + vertex @ e + f * (vertex @ a) }"));
  for (const auto& [name, glorot, constant] : {std::tuple("layer1.a", true, 0.0),
                                               {"layer1.b", false, 0.0},
                                               {"layer1.c", false, 1.0},
                                               {"layer1.d", true, 0.0},
                                               {"layer1.e", false, 0.0},
                                               {"layer1.f", false, -0.5}}) {
    const auto found =
        std::find_if(model.parameters.begin(), model.parameters.end(),
                     [&](const ModelParameter& parameter) { return parameter.name == name; });
    INFO(name);
    REQUIRE(found != model.parameters.end());
    CHECK(found->initial.glorot == glorot);
    if (!glorot) CHECK(found->initial.constant == constant);
  }
}

TEST_CASE("saga: every model that ooc brings is built with every norm, head and depth") {
  for (const EmbeddedModel& embedded : embedded_models()) {
    for (const std::int64_t layers : {1, 3}) {
      for (const Norm norm : {Norm::kNone, Norm::kBatch, Norm::kLayer}) {
        ModelOptions options;
        options.model = embedded.name;
        options.layers = layers;
        const bool heads = default_heads(embedded.program, embedded.name) > 1;
        options.heads = options.out_heads = heads ? 2 : 1;
        options.norm = embedded.name == "sgc" ? Norm::kNone : norm;
        options.residual = embedded.name != "sgc" && layers == 3;
        options.attn_dropout = heads ? 0.5 : 0;
        INFO(embedded.name << ", " << layers << " layers");
        const Model model = build_model(options, facts(), Mode::kTrain, DType::kF32);
        CHECK(model.graph.shape(model.logits).cols == 3);
      }
    }
  }
}

TEST_CASE("saga: a gather with weights is the one without where they are ignored") {
  const auto operations = [](const std::string& with, EdgeWeights weights) {
    ModelOptions options;
    options.edge_weights = weights;
    const Model model = build(layer_of("param w[in, out] z = vertex.out_factor * vertex\n"
                                       "edge { return src.z } gather mean " +
                                       with + "\nvertex { return (vertex.in_factor * accum) @ w }"),
                              options);
    std::vector<std::pair<std::string, std::vector<TensorId>>> found;
    for (const Operation& operation : model.graph.operations()) {
      found.emplace_back(operation.def->name, operation.inputs);
    }
    return found;
  };
  const auto bare = operations("with loops", EdgeWeights::kIgnore);
  CHECK(operations("with loops and weights", EdgeWeights::kIgnore) == bare);
  CHECK(operations("with loops and weights", EdgeWeights::kUse) != bare);
}

TEST_CASE("saga: weights are used where they are and a program takes them, unless told otherwise") {
  GraphFacts bare = facts();
  bare.edge_weights = false;
  ModelOptions options;
  const auto uses = [&](EdgeWeights asked, const GraphFacts& graph) {
    options.edge_weights = asked;
    return build_model(options, graph, Mode::kTrain, DType::kF32)
        .graph.has_input(kEdgeWeightsInput);
  };
  options.model = "gcn";
  CHECK(uses(EdgeWeights::kAuto, facts()));
  CHECK(uses(EdgeWeights::kUse, facts()));
  CHECK_FALSE(uses(EdgeWeights::kAuto, bare));
  CHECK_FALSE(uses(EdgeWeights::kIgnore, facts()));
  options.edge_weights = EdgeWeights::kUse;
  CHECK_THROWS_AS(check_edge_weights(options, false), UsageError);
  check_edge_weights(options, true);
  CHECK(unread_edge_data(options, facts()) == std::vector<std::string>{"types", "features"});
  options.model = "gat";
  CHECK_THROWS_AS(check_options(options), UsageError);
  CHECK_FALSE(uses(EdgeWeights::kAuto, facts()));
  CHECK(unread_edge_data(options, facts()) ==
        std::vector<std::string>{"weights", "types", "features"});
  options.edge_weights = EdgeWeights::kIgnore;
  CHECK(unread_edge_data(options, facts()) == std::vector<std::string>{"types", "features"});
}
