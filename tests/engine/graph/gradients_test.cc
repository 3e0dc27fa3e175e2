#include "engine/graph/gradients.h"

#include <cmath>

#include "engine/graph/row_operators.h"
#include "engine/model/build.h"
#include "engine/model/program.h"
#include "tests/engine/graph_harness.h"

using namespace ooc;
using test::GraphHarness;
using test::TinyDataset;

namespace {

TinyDataset directed_graph() {
  TinyDataset spec;
  spec.vertices = 53;  // a last block that is not full, vertices without edges
  spec.edges = test::random_edges(45, 160, 3);
  return spec;
}

Attributes with_value(double value, double count = 0) {
  Attributes attributes;
  attributes.value = value;
  attributes.count = count;
  attributes.key = 4;
  return attributes;
}

TensorId x(TensorGraph& graph, std::int64_t cols) {
  return graph.input("x", cols, DType::kF64, true);
}

// The sum of the neighbours' rows.
TensorId neighbours(TensorGraph& graph, TensorId x, Direction direction) {
  const TensorId edges = direction == Direction::kIn ? graph.source(x) : graph.destination(x);
  return graph.gather("sum", {edges}, direction);
}

}  // namespace

TEST_CASE("gradients: every operator agrees with central differences") {
  for (const std::int64_t cols : {3, 9, 40}) {
    GraphHarness harness(directed_graph());
    harness.add_input("x", cols);
    harness.add_input("y", cols);
    INFO(cols << " columns");
    SECTION("matmul " + std::to_string(cols)) {
      for (const bool transpose : {false, true}) {
        harness.check_gradients([&](TensorGraph& graph) {
          Attributes attributes;
          attributes.transpose = transpose;
          const TensorId w =
              transpose ? graph.parameter("wt", 35, cols) : graph.parameter("w", cols, 35);
          return graph.apply("matmul", {x(graph, cols), w}, attributes);
        });
      }
    }
    SECTION("bias " + std::to_string(cols)) {
      harness.check_gradients([&](TensorGraph& graph) {
        return graph.apply("bias", {x(graph, cols), graph.parameter("b", 1, cols)});
      });
    }
    SECTION("add " + std::to_string(cols)) {
      harness.check_gradients([&](TensorGraph& graph) {
        const TensorId sum =
            graph.apply("add", {x(graph, cols), graph.input("y", cols, DType::kF64, true)});
        return graph.apply("add", {sum, x(graph, cols)});  // one operand twice
      });
    }
    SECTION("relu " + std::to_string(cols)) {
      harness.check_gradients(
          [&](TensorGraph& graph) { return graph.apply("relu", {x(graph, cols)}); });
    }
    SECTION("relu, then dropout " + std::to_string(cols)) {
      // Backward reads what is left; where something else reads relu's output too, it reads that.
      for (const bool read_twice : {false, true}) {
        harness.check_gradients([&](TensorGraph& graph) {
          const TensorId y = graph.apply("relu", {x(graph, cols)});
          const TensorId left =
              graph.apply("dropout", {y, graph.input("ids", 1, DType::kI64)}, with_value(0.4));
          return read_twice ? graph.apply("add", {left, y}) : left;
        });
      }
    }
    SECTION("dropout " + std::to_string(cols)) {
      harness.check_gradients([&](TensorGraph& graph) {
        return graph.apply("dropout", {x(graph, cols), graph.input("ids", 1, DType::kI64)},
                           with_value(0.4));
      });
    }
    SECTION("scale_rows " + std::to_string(cols)) {
      harness.check_gradients([&](TensorGraph& graph) {
        return graph.apply("scale_rows", {x(graph, cols), degree_factor(graph, DegreeFactor::kIn)});
      });
    }
    SECTION("gather_sum " + std::to_string(cols)) {
      for (const Direction direction : {Direction::kIn, Direction::kOut}) {
        harness.check_gradients([&](TensorGraph& graph) {
          const TensorId factor = degree_factor(graph, DegreeFactor::kIn);
          const TensorId scaled = graph.apply("scale_rows", {x(graph, cols), factor});
          return graph.apply("scale_rows", {neighbours(graph, scaled, direction), factor});
        });
      }
    }
    SECTION("layer_norm " + std::to_string(cols)) {
      harness.check_gradients([&](TensorGraph& graph) {
        return graph.apply(
            "layer_norm",
            {x(graph, cols), graph.parameter("gamma", 1, cols), graph.parameter("beta", 1, cols)},
            with_value(1e-5));
      });
    }
    SECTION("batch_norm " + std::to_string(cols)) {
      harness.check_gradients([&](TensorGraph& graph) {
        const TensorId sums = graph.apply("batch_norm_sums", {x(graph, cols)});
        return graph.apply("batch_norm",
                           {x(graph, cols), sums, graph.parameter("gamma", 1, cols),
                            graph.parameter("beta", 1, cols)},
                           with_value(1e-5, 53));
      });
    }
  }
}

TEST_CASE("gradients: the loss agrees with central differences") {
  GraphHarness harness(directed_graph());
  harness.add_input("x", 3);
  harness.check_gradients([&](TensorGraph& graph) {
    Attributes attributes;
    attributes.count = static_cast<double>(harness.dataset().manifest().split_counts[0]);
    return graph.apply(
        "softmax_cross_entropy",
        {x(graph, 3), graph.input("labels", 1, DType::kI32), graph.input("splits", 1, DType::kU8)},
        attributes);
  });
}

TEST_CASE("gradients: the whole GCN agrees with central differences in every variant") {
  GraphHarness harness(directed_graph());
  const GraphFacts facts = facts_of(harness.dataset());
  harness.add_input("features", facts.feature_cols);
  for (const Norm norm : {Norm::kNone, Norm::kBatch, Norm::kLayer}) {
    for (const int variant : {0, 1, 2, 3}) {
      ModelOptions options;
      options.layers = 3;
      options.hidden = 9;
      options.norm = norm;
      options.residual = (variant & 1) != 0;
      options.linear_head = (variant & 2) != 0;
      options.input_dropout = 0.2;
      INFO("norm " << static_cast<int>(norm) << ", variant " << variant);
      harness.check_gradients(
          [&](TensorGraph& graph) {
            Model model = build_model(options, facts, Mode::kTrain, DType::kF64);
            graph = model.graph;
            return model.loss;
          },
          1e-5);
    }
  }
}

namespace {

// An operator that ooc does not have: y = x * sigmoid(x).
template <class T>
void swish(const OperatorCall& call) {
  const MatrixView &in = call.inputs[0], &out = call.outputs[0];
  for (std::int64_t slice = 0; slice < in.slice_count(); ++slice) {
    for (std::int64_t i = 0; i < in.rows; ++i) {
      for (std::int64_t c = 0; c < in.slice_cols(slice); ++c) {
        const T value = in.data<T>(slice)[i * in.stride(slice) + c];
        out.data<T>(slice)[i * out.stride(slice) + c] = value / (1 + std::exp(-value));
      }
    }
  }
}

template <class T>
void swish_gradient(const OperatorCall& call) {
  const MatrixView &g = call.inputs[0], &in = call.inputs[1], &out = call.outputs[0];
  for (std::int64_t slice = 0; slice < in.slice_count(); ++slice) {
    for (std::int64_t i = 0; i < in.rows; ++i) {
      for (std::int64_t c = 0; c < in.slice_cols(slice); ++c) {
        const T value = in.data<T>(slice)[i * in.stride(slice) + c];
        const T s = 1 / (1 + std::exp(-value));
        out.data<T>(slice)[i * out.stride(slice) + c] =
            g.data<T>(slice)[i * g.stride(slice) + c] * (s + value * s * (1 - s));
      }
    }
  }
}

TensorShape same_shape(const TensorGraph& graph, const Operation& operation) {
  return graph.shape(operation.inputs[0]);
}

void register_swish() {
  static const bool precompute = [] {
    register_cpu_row_kernel("swish", swish<float>, swish<double>);
    register_cpu_row_kernel("swish_gradient", swish_gradient<float>, swish_gradient<double>);
    OperatorDef def;
    def.name = "swish";
    def.shape = same_shape;
    def.gradient = [](GradientBuilder& builder, const Operation& op) {
      const TensorId dy = builder.output_gradient(op);
      builder.add(op.inputs[0], builder.graph().apply("swish_gradient", {dy, op.inputs[0]}));
    };
    register_operator(def);
    OperatorDef gradient;
    gradient.name = "swish_gradient";
    gradient.shape = same_shape;
    register_operator(gradient);
    return true;
  }();
  static_cast<void>(precompute);
}

}  // namespace

TEST_CASE("gradients: an operator registered here gets its gradient through a full model") {
  register_swish();
  GraphHarness harness(directed_graph());
  harness.add_input("x", 6);
  harness.check_gradients([&](TensorGraph& graph) {
    const TensorId factor = degree_factor(graph, DegreeFactor::kIn);
    TensorId h = graph.apply("matmul", {x(graph, 6), graph.parameter("w1", 6, 33)});
    h = graph.apply("swish", {neighbours(graph, h, Direction::kIn)});
    h = graph.apply("scale_rows", {h, factor});
    h = graph.apply("matmul", {neighbours(graph, h, Direction::kIn), graph.parameter("w2", 33, 3)});
    Attributes attributes;
    attributes.count = static_cast<double>(harness.dataset().manifest().split_counts[0]);
    return graph.apply(
        "softmax_cross_entropy",
        {h, graph.input("labels", 1, DType::kI32), graph.input("splits", 1, DType::kU8)},
        attributes);
  });
}
