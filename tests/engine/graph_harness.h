// Runs any tensor graph in double on a tiny dataset, and checks its gradients against central
// differences.
#pragma once

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/graph/gradients.h"
#include "engine/lower/stages.h"
#include "engine/model/program.h"
#include "engine/train/graph_inputs.h"
#include "kernels/device/cpu_backend.h"
#include "sched/plan/search/planner.h"
#include "sched/run/executor.h"
#include "tests/support/fake_block_io.h"
#include "tests/support/memory_tensor.h"
#include "tests/support/tiny_dataset.h"

namespace ooc::test {

class GraphHarness {
 public:
  explicit GraphHarness(const TinyDataset& spec)
      : dataset_(write_tiny_dataset(files_, spec)),
        io_(files_),
        inputs_(io_, dataset_),
        backend_(make_cpu_backend()) {}

  const Dataset& dataset() const { return dataset_; }

  // A random vertex tensor of doubles that a graph may name as an input.
  void add_input(const std::string& name, std::int64_t cols) {
    const TensorLayout layout{dataset_.vertices(), cols, dataset_.manifest().edges.block_rows};
    auto source = std::make_unique<test::MemoryTensor<double>>(layout);
    for (std::int64_t v = 0; v < layout.rows; ++v) {
      for (std::int64_t c = 0; c < cols; ++c) source->at(v, c) = normal_(random_);
    }
    tensors_[name] = source.get();
    extra_[name] = std::move(source);
  }
  // A vertex tensor of elements that are not real; value(row, column) gives them.
  template <class T, class F>
  void add_typed(const std::string& name, std::int64_t cols, F&& value) {
    const TensorLayout layout{dataset_.vertices(), cols, dataset_.manifest().edges.block_rows};
    auto source = std::make_unique<test::MemoryTensor<T>>(layout);
    for (std::int64_t v = 0; v < layout.rows; ++v) {
      for (std::int64_t c = 0; c < cols; ++c) source->at(v, c) = static_cast<T>(value(v, c));
    }
    tensors_[name] = source.get();
    typed_.push_back(std::move(source));
  }
  MemoryTensor<double>& source(const std::string& name) { return *extra_.at(name); }

  // Parameters by name; random where they don't exist yet.
  std::vector<double>& parameter(const Tensor& tensor) {
    auto& values = parameters_[tensor.name];
    while (static_cast<std::int64_t>(values.size()) < tensor.shape.rows * tensor.shape.cols) {
      values.push_back(normal_(random_));
    }
    return values;
  }

  // How check_gradients() cuts the work.
  void plan(const PlanOptions& options) { plan_ = options; }
  // How many elements of a gradient are checked at least, if it has as many.
  void sample(std::size_t elements) { sample_ = elements; }

  struct Result {
    std::map<TensorId, std::vector<double>> tensors;  // the roots, row-major
  };

  Result run(const TensorGraph& graph, const std::vector<TensorId>& roots,
             const PlanOptions& options = {}) {
    const StagedGraph staged = make_stages(graph, "test", roots);
    return run(graph, roots, staged, make_plan({&staged.program}, counts(), options), options);
  }
  // The same, planned before; with sources and parameters as they are now.
  Result run(const TensorGraph& graph, const std::vector<TensorId>& roots,
             const StagedGraph& staged, const Plan& plan, const PlanOptions& options) {
    std::map<std::string, TensorStore*> stores = inputs_.stores();
    for (const auto& [name, tensor] : tensors_) stores[name] = &tensor->store(io_);
    Executor executor({*backend_, io_, dataset_, "/", options.workers}, {&staged.program}, plan,
                      stores);
    for (std::size_t id = 0; id < graph.tensors().size(); ++id) {
      const Tensor& tensor = graph.tensors()[id];
      const ValueId value = staged.values[id];
      if (value < 0 || tensor.shape.space != Space::kParameter) continue;
      executor.bind_parameter(0, value, parameter(tensor).data());
    }
    REQUIRE(executor.run(0, {5, 3}, nullptr));
    Result result;
    for (const TensorId root : roots) {
      result.tensors[root] = read(graph, staged, executor, root);
    }
    return result;
  }

  // For the scalar L = sum(cotangent * output), or the train loss where the output is a loss:
  // every element of every gradient against (L(x + h) - L(x - h)) / 2h.
  void check_gradients(const std::function<TensorId(TensorGraph&)>& build,
                       double tolerance = 2e-6) {
    TensorGraph graph(DType::kF64);
    const TensorId output = build(graph);
    const bool is_loss = graph.shape(output).space == Space::kReduction;
    GradientSeed seed{output, -1};
    if (!is_loss) {
      add_input("cotangent", graph.shape(output).cols);
      seed.gradient = graph.input("cotangent", graph.shape(output).cols, DType::kF64);
    }
    const auto count = static_cast<TensorId>(graph.tensors().size());
    const Gradients gradients = add_gradients(graph, seed);
    std::vector<TensorId> roots;
    for (TensorId leaf = 0; leaf < count; ++leaf) {
      if (graph.tensor(leaf).producer >= 0 || !graph.tensor(leaf).needs_gradient) continue;
      INFO("the gradient of " << graph.tensor(leaf).name);
      REQUIRE(gradients.contains(leaf));
    }
    // A gradient may be the cotangent itself (of `add`): read through an operator, so it is made.
    std::map<TensorId, std::vector<TensorId>> made;
    for (const auto& [tensor, parts] : gradients) {
      if (tensor >= count || graph.tensor(tensor).producer >= 0) continue;
      for (const TensorId part : parts) {
        const bool outside = graph.tensor(part).producer < 0;
        roots.push_back(outside ? graph.apply("add", {part, zeros(graph, part)}) : part);
        made[tensor].push_back(roots.back());
      }
    }
    REQUIRE_FALSE(roots.empty());
    const Result backward = run(graph, roots, plan_);
    const StagedGraph staged = make_stages(graph, "test", {output});
    const Plan plan = make_plan({&staged.program}, counts(), plan_);
    const auto loss = [&] {
      return scalar(graph, output, run(graph, {output}, staged, plan, plan_));
    };
    for (const auto& [tensor, parts] : made) {
      std::vector<double> gradient = backward.tensors.at(parts.front());
      for (std::size_t part = 1; part < parts.size(); ++part) {
        const std::vector<double>& more = backward.tensors.at(parts[part]);
        for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] += more[i];
      }
      compare(graph.tensor(tensor), gradient, loss, tolerance);
    }
  }

 private:
  GraphCounts counts() const {
    GraphCounts counts = counts_of(dataset_);
    for (const auto& [name, tensor] : tensors_) {
      counts.stored_dtypes[name] = tensor->dtype();
      counts.produced_inputs.insert(name);
    }
    return counts;
  }

  TensorId zeros(TensorGraph& graph, TensorId like) {
    const std::int64_t cols = graph.shape(like).cols;
    add_input("zeros", cols);
    for (std::int64_t v = 0; v < dataset_.vertices(); ++v) {
      for (std::int64_t c = 0; c < cols; ++c) source("zeros").at(v, c) = 0;
    }
    return graph.input("zeros", cols, DType::kF64);
  }

  std::vector<double> read(const TensorGraph& graph, const StagedGraph& staged, Executor& executor,
                           TensorId root) const {
    const TensorShape& shape = graph.shape(root);
    if (shape.space == Space::kReduction) {
      const auto* data = reinterpret_cast<const double*>(executor.reduction(0, staged.value(root)));
      return {data, data + shape.rows * shape.cols};
    }
    const TensorLayout layout = executor.layout(0, staged.value(root));
    std::vector<double> values(static_cast<std::size_t>(layout.rows * layout.cols));
    executor.read_output(0, staged.value(root), 0, layout.block_count(), values.data());
    return values;
  }

  double scalar(const TensorGraph& graph, TensorId output, const Result& result) {
    const std::vector<double>& values = result.tensors.at(output);
    if (graph.shape(output).space == Space::kReduction) {  // the last column is what to divide by
      return values[0] / values[static_cast<std::size_t>(graph.shape(output).cols) - 1];
    }
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto cols = static_cast<std::size_t>(graph.shape(output).cols);
      sum += values[i] *
             source("cotangent")
                 .at(static_cast<std::int64_t>(i / cols), static_cast<std::int64_t>(i % cols));
    }
    return sum;
  }

  void compare(const Tensor& tensor, const std::vector<double>& gradient,
               const std::function<double()>& loss, double tolerance) {
    const double h = 1e-5;
    const std::size_t step = std::max<std::size_t>(1, gradient.size() / sample_);
    for (std::size_t i = 0; i < gradient.size(); i += step) {
      const auto cols = static_cast<std::size_t>(tensor.shape.cols);
      double& x =
          tensor.shape.space == Space::kParameter
              ? parameter(tensor)[i]
              : source(tensor.name)
                    .at(static_cast<std::int64_t>(i / cols), static_cast<std::int64_t>(i % cols));
      const double kept = x;
      x = kept + h;
      const double above = loss();
      x = kept - h;
      const double below = loss();
      x = kept;
      INFO(tensor.name << " element " << i);
      const double expected = (above - below) / (2 * h);
      CHECK(std::abs(gradient[i] - expected) <= tolerance * (1 + std::abs(expected)));
    }
  }

  std::size_t sample_ = 40;
  PlanOptions plan_;
  MemoryFileSystem files_;
  Dataset dataset_;
  MemoryBlockIo io_;
  GraphInputs inputs_;
  std::unique_ptr<Backend> backend_;
  std::map<std::string, AnyMemoryTensor*> tensors_;
  std::map<std::string, std::unique_ptr<MemoryTensor<double>>> extra_;
  std::vector<std::unique_ptr<AnyMemoryTensor>> typed_;
  std::map<std::string, std::vector<double>> parameters_;
  std::mt19937_64 random_{11};
  std::normal_distribution<double> normal_;
};

}  // namespace ooc::test
