// The tensor graph: what a model computes, as operators over tensors. A tensor is a vertex tensor
// (a row a vertex), a parameter, or a reduction over all rows; which of them, and which shape, the
// operator table says (engine/operators.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/operator.h"
#include "storage/types.h"

namespace ooc {

using TensorId = int;

enum class Space { kVertex, kParameter, kReduction };

struct TensorShape {
  Space space = Space::kVertex;
  std::int64_t rows = 0;  // parameters and reductions
  std::int64_t cols = 0;
  DType dtype = DType::kF32;
};

struct Tensor {
  std::string name;
  TensorShape shape;
  int producer = -1;            // index into operations(); -1: an input or a parameter
  bool needs_gradient = false;  // something trainable feeds it through differentiable operators
};

struct OperatorDef;

struct Operation {
  const OperatorDef* def = nullptr;
  std::vector<TensorId> inputs;
  TensorId output = -1;
  Attributes attributes;
  Direction direction = Direction::kIn;  // of propagations
};

class TensorGraph {
 public:
  // `real`: the scalar type of everything real-valued, fp32 or fp64.
  explicit TensorGraph(DType real) : real_(real) {}

  DType real() const { return real_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  const std::vector<Operation>& operations() const { return operations_; }
  const Tensor& tensor(TensorId id) const { return tensors_[static_cast<std::size_t>(id)]; }
  const TensorShape& shape(TensorId id) const { return tensor(id).shape; }

  // A vertex tensor from outside; the same name gives the same tensor.
  TensorId input(const std::string& name, std::int64_t cols, DType dtype,
                 bool needs_gradient = false);
  // A matrix from outside, kept between runs.
  TensorId parameter(const std::string& name, std::int64_t rows, std::int64_t cols,
                     bool trainable = true);
  // Applies an operator of the table; its shape rule is checked (OOC_CHECK).
  TensorId apply(std::string_view op, std::vector<TensorId> inputs,
                 const Attributes& attributes = {}, const std::string& name = "");
  // Sum over edges: kIn: out[v] = sum of x[u] over u -> v; kOut: out[u] = sum of x[v] over u -> v.
  TensorId propagate(TensorId x, Direction direction, const std::string& name = "");

 private:
  TensorId add_tensor(Tensor tensor);
  TensorId add_operation(Operation operation, const std::string& name);

  DType real_;
  std::vector<Tensor> tensors_;
  std::vector<Operation> operations_;  // in an order in which every input is there
};

}  // namespace ooc
