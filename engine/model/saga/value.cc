#include "engine/model/saga/value.h"

#include <fmt/format.h>

#include <cmath>

#include "engine/model/saga/complaint.h"

namespace ooc::saga {

using Kind = Value::Kind;

Value number_value(double number) {
  Value value;
  value.number = number;
  return value;
}

Value rows_value(const TensorGraph& graph, TensorId tensor) {
  Value value;
  value.kind = Kind::kRows;
  value.tensor = tensor;
  value.cols = graph.shape(tensor).cols;
  return value;
}

std::string describe(const Value& value) {
  switch (value.kind) {
    case Kind::kNumber:
      return fmt::format("the number {}", value.number);
    case Kind::kRows:
      return value.cols == 1 ? "1 column" : fmt::format("{} columns", value.cols);
    case Kind::kParameter:
      return value.rows == 1 ? fmt::format("{} [{}]", value.name, value.cols)
                             : fmt::format("{} [{}, {}]", value.name, value.rows, value.cols);
    case Kind::kTypes:
      break;
  }
  return "data.type";
}

void Arithmetic::mismatch(char op, const Value& a, const Value& b, const Place& right) const {
  const std::string left = fmt::format("left of {} stands {}", op, describe(a));
  std::string expected;
  if (a.kind == Kind::kTypes || b.kind == Kind::kTypes) {
    expected = "rows, a parameter or a number (data.type is for pick_type)";
  } else if (op == '@' && a.kind == Kind::kRows) {
    expected = fmt::format("a parameter of {} rows right of @", a.cols);
  } else if (a.kind != Kind::kRows && b.kind != Kind::kRows) {
    expected = "rows on one side at least";
  } else if (op == '@') {
    expected = "rows left of @";
  } else if (op == '/') {
    expected = "a number right of /";
  } else {
    const std::int64_t cols = a.kind == Kind::kNumber ? b.cols : a.cols;
    expected = cols == 1 ? "what goes with 1 column"
                         : fmt::format("{} columns, 1 column or a parameter [{}]", cols, cols);
  }
  refuse(source_, right, expected, describe(b), left);
}

Value Arithmetic::combine(char op, const Value& a, const Value& b, const Place& right) {
  if (a.kind == Kind::kNumber && b.kind == Kind::kNumber && op != '@') {
    return numbers(op, a.number, b.number, right);
  }
  if (a.kind == Kind::kTypes || b.kind == Kind::kTypes) mismatch(op, a, b, right);
  if (a.kind != Kind::kRows && b.kind != Kind::kRows) mismatch(op, a, b, right);
  const bool rows_first = a.kind == Kind::kRows;
  std::optional<Value> result;
  if (op == '@') result = matmul(a, b);
  if (op == '*') result = rows_first ? multiply(a, b) : multiply(b, a);
  if (op == '+') result = rows_first ? add(a, b) : add(b, a);
  if (op == '-') result = rows_first ? subtract(a, b) : add(affine(b, -1, 0), a);
  if (op == '/' && b.kind == Kind::kNumber && b.number != 0) result = affine(a, 1 / b.number, 0);
  if (!result) mismatch(op, a, b, right);
  return *result;
}

Value Arithmetic::negate(const Value& value, const Place& place) {
  if (value.kind == Kind::kNumber) return number_value(-value.number);
  if (value.kind == Kind::kRows) return affine(value, -1, 0);
  refuse(source_, place, "rows or a number after -", describe(value),
         "take the parameter away from rows");
}

Value Arithmetic::numbers(char op, double a, double b, const Place& right) const {
  double result = 0;
  if (op == '+') result = a + b;
  if (op == '-') result = a - b;
  if (op == '*') result = a * b;
  if (op == '/') result = a / b;
  if (std::isfinite(result)) return number_value(result);
  refuse(source_, right, fmt::format("a number that {} {} leaves finite", a, op),
         fmt::format("{}", b), "no number is larger than 1.8e308, none is divided by 0");
}

std::optional<Value> Arithmetic::add(const Value& x, const Value& b) {
  if (b.kind == Kind::kNumber) return affine(x, 1, b.number);
  if (b.kind == Kind::kParameter) {
    if (b.rows != 1 || (x.cols != b.cols && x.cols != 1)) return std::nullopt;
    return rows(graph_.apply("bias", {widen(x, b.cols).tensor, b.tensor}));
  }
  if (x.cols != b.cols && x.cols != 1 && b.cols != 1) return std::nullopt;
  return rows(graph_.apply("add", {widen(x, b.cols).tensor, widen(b, x.cols).tensor}));
}

std::optional<Value> Arithmetic::subtract(const Value& x, const Value& b) {
  if (b.kind == Kind::kNumber) return affine(x, 1, -b.number);
  if (b.kind == Kind::kRows && x.cols == b.cols) {
    return rows(graph_.apply("sub", {x.tensor, b.tensor}));
  }
  const std::optional<Value> reverse = add(affine(x, -1, 0), b);
  if (!reverse) return std::nullopt;
  return affine(*reverse, -1, 0);
}

std::optional<Value> Arithmetic::multiply(const Value& x, const Value& b) {
  if (b.kind == Kind::kNumber) return affine(x, b.number, 0);
  if (b.kind == Kind::kParameter) {
    if (b.rows != 1 || (b.cols != 1 && x.cols != 1 && b.cols != x.cols)) return std::nullopt;
    if (b.cols == 1) return rows(graph_.apply("scale_by", {x.tensor, b.tensor}));
    return rows(graph_.apply("scale_cols", {widen(x, b.cols).tensor, b.tensor}));
  }
  if (x.cols == b.cols) return rows(graph_.apply("mul", {x.tensor, b.tensor}));
  if (b.cols == 1) return rows(graph_.apply("scale_rows", {x.tensor, b.tensor}));
  if (x.cols == 1) return rows(graph_.apply("scale_rows", {b.tensor, x.tensor}));
  return std::nullopt;
}

// Rows times a matrix; times a vector: the dot product with it, one column.
std::optional<Value> Arithmetic::matmul(const Value& a, const Value& b) {
  if (a.kind != Kind::kRows || b.kind != Kind::kParameter) return std::nullopt;
  Attributes attributes;
  attributes.transpose = b.rows == 1 && a.cols != 1;
  if (a.cols != (attributes.transpose ? b.cols : b.rows)) return std::nullopt;
  return rows(graph_.apply("matmul", {a.tensor, b.tensor}, attributes));
}

Value Arithmetic::affine(const Value& x, double factor, double shift) {
  Attributes attributes;
  attributes.value = factor;
  attributes.shift = shift;
  return rows(graph_.apply("affine", {x.tensor}, attributes));
}

Value Arithmetic::widen(const Value& x, std::int64_t cols) {
  if (x.cols == cols || x.cols != 1) return x;
  Attributes attributes;
  attributes.heads = 1;
  attributes.cols = cols;
  return rows(graph_.apply("head_broadcast", {x.tensor}, attributes));
}

}  // namespace ooc::saga
