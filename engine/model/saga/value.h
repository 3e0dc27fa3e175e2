// What an expression of a program stands for: numbers, rows (of vertices or of edges), parameters.
#pragma once

#include <optional>
#include <string>

#include "engine/graph/tensor_graph.h"
#include "engine/model/saga/syntax.h"

namespace ooc::saga {

struct Value {
  enum class Kind {
    kNumber,
    kRows,       // a vertex or an edge tensor
    kParameter,  // rows x cols; a vector is one row, a learnt number is 1 x 1
    kTypes,      // data.type: only pick_type takes it
  };
  Kind kind = Kind::kNumber;
  double number = 0;
  TensorId tensor = -1;
  std::int64_t rows = 0;  // of parameters
  std::int64_t cols = 0;
  std::string name;  // a parameter's
};

Value number_value(double number);
Value rows_value(const TensorGraph& graph, TensorId tensor);

// "the number 0.2", "8 columns", "weight [16, 3]".
std::string describe(const Value& value);

// More columns than any tensor needs; they keep a slip from filling the memory.
inline constexpr std::int64_t kMaxColumns = 1 << 20;
inline constexpr std::int64_t kMaxElements = std::int64_t{1} << 31;

// Applies + - * / @ of expressions. Element-wise: equal widths, or one column, or a parameter of
// one row, or a number; UsageError at `right`, which names both shapes, for anything else.
class Arithmetic {
 public:
  Arithmetic(TensorGraph& graph, const std::string& source) : graph_(graph), source_(source) {}

  Value combine(char op, const Value& a, const Value& b, const Place& right);
  Value negate(const Value& value, const Place& place);

 private:
  Value rows(TensorId tensor) const { return rows_value(graph_, tensor); }
  Value numbers(char op, double a, double b, const Place& right) const;
  // x is rows; nothing where the shapes don't fit.
  std::optional<Value> add(const Value& x, const Value& b);
  std::optional<Value> subtract(const Value& x, const Value& b);
  std::optional<Value> multiply(const Value& x, const Value& b);
  std::optional<Value> matmul(const Value& a, const Value& b);
  Value affine(const Value& x, double factor, double shift);
  Value widen(const Value& x, std::int64_t cols);
  [[noreturn]] void mismatch(char op, const Value& a, const Value& b, const Place& right) const;

  TensorGraph& graph_;
  const std::string& source_;
};

}  // namespace ooc::saga
