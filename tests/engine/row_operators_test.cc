// Every row operator of engine/row_operators.cc: its gradient rule and the kernels that it names,
// against central differences, at widths that cross slices.
#include "engine/row_operators.h"

#include "tests/engine/graph_harness.h"

using namespace ooc;
using test::GraphHarness;
using test::TinyDataset;

namespace {

TinyDataset small_graph() {
  TinyDataset spec;
  spec.vertices = 29;  // a last block that is not full
  spec.edges = test::random_edges(20, 60, 3);
  return spec;
}

constexpr std::int64_t kTestedWidths[] = {5, 32, 70, 96};

// A model of one operator: vertex inputs by name, all of which want a gradient.
class Check {
 public:
  Check() : harness(small_graph()) {}

  TensorId x(TensorGraph& graph, const std::string& name, std::int64_t cols) {
    if (graph.tensors().empty()) added_.clear();
    if (!added_[name]) harness.add_input(name, cols);
    added_[name] = true;
    return graph.input(name, cols, DType::kF64, true);
  }

  GraphHarness harness;

 private:
  std::map<std::string, bool> added_;
};

void check_unary(const char* op, const Attributes& attributes = {}) {
  for (const std::int64_t cols : kTestedWidths) {
    INFO(op << ", " << cols << " columns");
    Check check;
    check.harness.check_gradients([&](TensorGraph& graph) {
      return graph.apply(op, {check.x(graph, "x", cols)}, attributes);
    });
  }
}

void check_binary(const char* op) {
  for (const std::int64_t cols : kTestedWidths) {
    INFO(op << ", " << cols << " columns");
    Check check;
    check.harness.check_gradients([&](TensorGraph& graph) {
      return graph.apply(op, {check.x(graph, "a", cols), check.x(graph, "b", cols)});
    });
  }
}

}  // namespace

TEST_CASE("row operators: element-wise ones agree with central differences") {
  check_binary("sub");
  check_binary("mul");
  check_binary("maximum");
  check_unary("affine", {.value = 1.5, .shift = -0.5});
}

TEST_CASE("row operators: activations agree with central differences") {
  for (const char* op : {"sigmoid", "tanh", "elu", "gelu", "exp"}) check_unary(op);
  check_unary("leaky_relu", {.value = 0.2});
}

TEST_CASE("row operators: factors agree with central differences") {
  for (const std::int64_t cols : kTestedWidths) {
    INFO(cols << " columns");
    Check check;
    check.harness.check_gradients([&](TensorGraph& graph) {
      const TensorId x = check.x(graph, "x", cols);
      return graph.apply("scale_cols", {x, graph.parameter("a", 1, cols)});
    });
    check.harness.check_gradients([&](TensorGraph& graph) {
      const TensorId x = check.x(graph, "x", cols);
      return graph.apply("scale_by", {x, graph.parameter("s", 1, 1)});
    });
  }
}
