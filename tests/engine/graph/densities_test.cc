// How many elements are expected not to be zero, beside how many aren't.
#include <algorithm>
#include <catch2/catch.hpp>

#include "engine/graph/zero_rows.h"
#include "tests/engine/graph_harness.h"

using namespace ooc;
using namespace ooc::test;

namespace {

double share_of_others(const std::vector<double>& values) {
  const auto zeros = std::count(values.begin(), values.end(), 0.0);
  return 1 - static_cast<double>(zeros) / static_cast<double>(values.size());
}

}  // namespace

TEST_CASE("densities: as many elements are zero as the operator table expects") {
  constexpr std::int64_t kCols = 40;
  TinyDataset spec;
  spec.vertices = 1000;
  GraphHarness harness(spec);
  TensorGraph graph(DType::kF64);
  const auto input = [&](const char* name, std::int64_t cols) {
    harness.add_input(name, cols);
    return graph.input(name, cols, DType::kF64);
  };
  const TensorId x = input("x", kCols), y = input("y", kCols), factor = input("factor", 1);
  const TensorId ids = graph.input("ids", 1, DType::kI64);
  std::vector<TensorId> made;
  const auto apply = [&](const char* op, std::vector<TensorId> inputs, const Attributes& with) {
    made.push_back(graph.apply(op, std::move(inputs), with));
    return made.back();
  };
  const TensorId half = apply("relu", {x}, {});
  const TensorId less = apply("dropout", {half, ids}, {.value = 0.3, .key = 1});
  const TensorId other = apply("dropout", {y, ids}, {.value = 0.6, .key = 2});
  const TensorId bits = graph.apply("positive_bits", {less});
  apply("keep_bits", {y, bits}, {});
  apply("keep_bits", {other, bits}, {});
  apply("relu_gradient", {other, half}, {});
  apply("mul", {half, other}, {});
  apply("add", {half, other}, {});
  apply("sub", {half, other}, {});
  apply("affine", {half}, {.value = 2});
  apply("affine", {half}, {.value = 2, .shift = 1});
  apply("scale_rows", {half, factor}, {});
  apply("columns", {half}, {.begin = 4, .cols = 12});
  apply("scale_cols", {half, graph.parameter("scales", 1, kCols)}, {});
  apply("tanh", {y}, {});
  const GraphHarness::Result result = harness.run(graph, made);
  const std::vector<double> expected = expected_densities(graph);
  for (const TensorId tensor : made) {
    INFO(graph.tensor(tensor).name);
    const double share = share_of_others(result.tensors.at(tensor));
    CHECK(share == Approx(expected[static_cast<std::size_t>(tensor)]).margin(0.01));
  }
}

TEST_CASE("densities: stages know what is expected of their values") {
  TensorGraph graph(DType::kF32);
  const TensorId x = graph.input("x", 8, DType::kF32);
  const TensorId ids = graph.input("ids", 1, DType::kI64);
  const TensorId splits = graph.input("splits", 1, DType::kU8);
  const TensorId labels = graph.input("labels", 1, DType::kI32);
  const TensorId hidden = graph.apply("relu", {x});
  const TensorId dropped = graph.apply("dropout", {hidden, ids}, {.value = 0.5});
  const TensorId sums = graph.gather("sum", {graph.source(dropped)}, Direction::kIn);
  const TensorId gradient = graph.apply("softmax_cross_entropy_gradient", {sums, labels, splits});
  const TensorId back = graph.gather("sum", {graph.destination(gradient)}, Direction::kOut);
  const StagedGraph staged = make_stages(graph, "test", {back});
  const auto value = [&](TensorId id) {
    return staged.program.values[static_cast<std::size_t>(staged.value(id))];
  };
  CHECK(value(dropped).density == 0.25);
  CHECK(value(sums).density == 1);
  CHECK(value(back).density == 1);
  CHECK(value(gradient).train_only);
  for (const TensorId id : {dropped, sums, back}) CHECK(!value(id).train_only);
}
