#include "kernels/spec/row_kernels.h"

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "storage/base/errors.h"
#include "storage/format/tensor_layout.h"

namespace ooc {
namespace {

constexpr auto kF32 = OperandType::kF32;
constexpr auto kF64 = OperandType::kF64;
constexpr auto kI32 = OperandType::kI32;
constexpr auto kI64 = OperandType::kI64;
constexpr auto kU8 = OperandType::kU8;
constexpr auto kAny = OperandType::kAny;

constexpr auto kRows = CountOf::kRows;
constexpr auto kLabelled = CountOf::kLabels;

constexpr OperandSpec kA{"A", 'n', 'd'};
constexpr OperandSpec kB{"B", 'n', 'd'};
constexpr OperandSpec kX{"X", 'n', 'd'};
constexpr OperandSpec kY{"Y", 'n', 'd'};
constexpr OperandSpec kG{"G", 'n', 'd'};
constexpr OperandSpec kDx{"dX", 'n', 'd'};
constexpr OperandSpec kGamma{"gamma", '1', 'd'};
constexpr OperandSpec kBeta{"beta", '1', 'd'};
constexpr OperandSpec kRow{"R", '1', 'd'};
constexpr OperandSpec kSums{"sums", '2', 'd', kF64};
constexpr OperandSpec kLogits{"logits", 'n', 'c'};
constexpr OperandSpec kLabels{"labels", 'n', '1', kI32};
constexpr OperandSpec kBits{"Y", 'n', 'c', kU8};
constexpr OperandSpec kValues{"Y", 'n', 'c', kF32};
constexpr OperandSpec kWeights{"w", '1', 'c'};
constexpr OperandSpec kWords{"B", 'n', 'b', kI32};
constexpr OperandSpec kSplits{"splits", 'n', '1', kU8};

constexpr OperandSpec kDegrees{"D", 'n', '3', kI32};

constexpr OperandSpec kGx{"Gx", 'n', 't'};
constexpr OperandSpec kGh{"Gh", 'n', 't'};
constexpr OperandSpec kH{"H", 'n', 'd'};
constexpr OperandSpec kEdgeKey{"K", 'n', '3', kI64};

bool h_divides_d(const Extents& e, const Attributes&) { return e['d'] % e['h'] == 0; }
bool h_is_heads(const Extents& e, const Attributes& a) {
  return e['h'] == a.heads && e['d'] % a.heads == 0;
}
bool d_is_cols_of_heads(const Extents& e, const Attributes& a) {
  return e['d'] == a.cols && e['d'] % e['h'] == 0;
}
bool d_is_heads_of_k(const Extents& e, const Attributes& a) { return e['d'] == a.heads * e['k']; }
bool heads_divide_d(const Extents& e, const Attributes& a) {
  return a.heads >= 1 && e['d'] % a.heads == 0;
}
bool s_is_sum(const Extents& e, const Attributes&) { return e['s'] == e['d'] + e['e']; }
bool m_is_range(const Extents& e, const Attributes& a) {
  return e['m'] == a.cols && a.begin >= 0 && a.begin + e['m'] <= e['d'];
}
bool m_has_place(const Extents& e, const Attributes& a) {
  return e['d'] == a.cols && a.begin >= 0 && a.begin + e['m'] <= e['d'];
}
bool d_is_picked(const Extents& e, const Attributes& a) {
  return e['d'] == a.cols && e['w'] % e['d'] == 0;
}
bool w_is_cols(const Extents& e, const Attributes& a) {
  return e['w'] == a.cols && e['w'] % e['d'] == 0;
}
bool value_is_degree_factor(const Extents&, const Attributes& a) {
  return a.value >= 0 && a.value <= static_cast<double>(DegreeFactor::kLoop);
}
bool value_is_value_loss(const Extents&, const Attributes& a) {
  return a.value >= 0 && a.value <= static_cast<double>(ValueLoss::kHuber);
}
bool b_is_words(const Extents& e, const Attributes&) {
  return e['b'] == ceil_div(e['d'], kBitsPerWord);
}
bool t_is_three_d(const Extents& e, const Attributes&) { return e['t'] == 3 * e['d']; }

constexpr RowKernelSpec kElementwise[] = {
    {"matmul", {{{"X", 'n', 'k'}, {"W", 'k', 'm', OperandType::kReal, true}}}, {"Y", 'n', 'm'}},
    {"matmul_reduce", {{{"X", 'n', 'k'}, {"G", 'n', 'm'}}}, {"R", 'k', 'm'}, true},
    {"bias", {{kX, {"b", '1', 'd'}}}, kY},
    {"column_sum", {{kX}}, kRow, true},
    {"add", {{kA, kB}}, kY},
    {"sub", {{kA, kB}}, kY},
    {"mul", {{kA, kB}}, kY},
    {"affine", {{kX}}, kY},
    {"maximum", {{kA, kB}}, kY},
    {"maximum_gradient", {{kG, kA, kB}}, {"dA", 'n', 'd'}},
    {"relu", {{kX}}, kY},
    {"relu_gradient", {{kG, kY}}, kDx},
    {"positive_bits", {{kX}}, kWords, false, b_is_words},
    {"keep_bits", {{kG, kWords}}, kY, false, b_is_words},
    {"dropout", {{kX, {"ids", 'n', '1', kI64}}}, kY},
    {"scale_rows", {{kX, {"f", 'n', '1'}}}, kY},
    {"copy", {{kX}}, kY},
    {"copy_ids", {{{"X", 'n', 'd', kI64}}}, {"Y", 'n', 'd', kI64}},
    {"first_rows", {{{"X", 'n', 'd', kAny}}}, {"Y", 'n', 'd', kAny}},
    {"extend_rows", {{{"X", 'n', 'd', kAny}}}, {"Y", 'n', 'd', kAny}},
    {"edge_key",
     {{{"s", 'n', '1', kI64}, {"t", 'n', '1', kI64}, {"i", 'n', '1', kI64}}},
     {"K", 'n', '3', kI64}},
    {"scale_cols", {{kX, {"a", '1', 'd'}}}, kY},
    {"mul_column_sum", {{kA, kB}}, kRow, true},
    {"scale_by", {{kX, {"s", '1', '1'}}}, kY},
    {"dot_sum", {{kA, kB}}, {"R", '1', '1'}, true},
    {"sigmoid", {{kX}}, kY},
    {"sigmoid_gradient", {{kG, kY}}, kDx},
    {"tanh", {{kX}}, kY},
    {"tanh_gradient", {{kG, kY}}, kDx},
    {"leaky_relu", {{kX}}, kY},
    {"leaky_relu_gradient", {{kG, kY}}, kDx},
    {"elu", {{kX}}, kY},
    {"elu_gradient", {{kG, kY}}, kDx},
    {"gelu", {{kX}}, kY},
    {"gelu_gradient", {{kG, kX}}, kDx},
    {"exp", {{kX}}, kY},
};

constexpr RowKernelSpec kColumnGroups[] = {
    {"scale_heads", {{kX, {"f", 'n', 'h'}}}, kY, false, h_divides_d},
    {"head_dot", {{kA, kB}}, {"Y", 'n', 'h'}, false, h_is_heads},
    {"head_sum", {{kX}}, {"Y", 'n', 'h'}, false, h_is_heads},
    {"head_broadcast", {{{"F", 'n', 'h'}}}, kY, false, d_is_cols_of_heads},
    {"heads_mean", {{kX}}, {"Y", 'n', 'k'}, false, d_is_heads_of_k},
    {"heads_spread", {{{"G", 'n', 'k'}}}, kDx, false, d_is_heads_of_k},
    {"softmax_normalize", {{kA, {"Z", 'n', 'h'}}}, kY, false, h_divides_d},
    {"concat", {{kA, {"B", 'n', 'e'}}}, {"Y", 'n', 's'}, false, s_is_sum},
    {"columns", {{kX}}, {"Y", 'n', 'm'}, false, m_is_range},
    {"place_columns", {{{"G", 'n', 'm'}}}, kDx, false, m_has_place},
    {"pick_type", {{{"X", 'n', 'w'}, {"t", 'n', '1', kI32}}}, kY, false, d_is_picked},
    {"place_type", {{kG, {"t", 'n', '1', kI32}}}, {"dX", 'n', 'w'}, false, w_is_cols},
    {"degree_factor", {{kDegrees}}, {"f", 'n', '1'}, false, value_is_degree_factor},
    {"inverse", {{{"S", 'n', '1', kF64}}}, {"f", 'n', '1'}},
    {"inverse_sqrt", {{{"S", 'n', '1', kF64}}}, {"f", 'n', '1'}},
    {"count_zeros", {{kX}}, {"R", '1', '1', kF64}, true},
    {"binary_label", {{kLabels}}, {"Y", 'n', '1', kU8}},
    {"gru", {{kGx, kGh, kH}}, kY, false, t_is_three_d},
    {"gru_input_gradient", {{kG, kGx, kGh, kH}}, {"dGx", 'n', 't'}, false, t_is_three_d},
    {"gru_hidden_gradient", {{kG, kGx, kGh, kH}}, {"dGh", 'n', 't'}, false, t_is_three_d},
    {"gru_state_gradient", {{kG, kGx, kGh}}, {"dH", 'n', 'd'}, false, t_is_three_d},
    {"softmax_weight", {{{"S", 'n', 'h'}, {"M", 'n', 'h'}, {"Z", 'n', 'h'}}}, {"Y", 'n', 'h'}},
    {"edge_dropout", {{kX, kEdgeKey}}, kY, false, heads_divide_d},
    {"winner_key", {{{"s", 'n', '1', kI64}, {"i", 'n', '1', kI64}}}, {"E", 'n', '1', kI64}},
    {"select_winner", {{kG, {"W", 'n', 'd', kI64}, {"E", 'n', '1', kI64}}}, kY},
};

constexpr RowKernelSpec kNormsAndLosses[] = {
    {"layer_norm", {{kX, kGamma, kBeta}}, kY},
    {"layer_norm_gradient", {{kG, kX, kGamma}}, kDx},
    {"layer_norm_gamma_gradient", {{kG, kX}}, kRow, true},
    {"batch_norm_sums", {{kX}}, kSums, true},
    {"batch_norm", {{kX, kSums, kGamma, kBeta}}, kY, false, nullptr, kRows},
    {"batch_norm_gamma_gradient", {{kG, kX, kSums}}, kRow, true, nullptr, kRows},
    {"batch_norm_gradient",
     {{kG, kX, kSums, kGamma, {"dgamma", '1', 'd'}, {"dbeta", '1', 'd'}}},
     kDx,
     false,
     nullptr,
     kRows},
    {"batch_norm_inference", {{kX, {"mean", '1', 'd'}, {"variance", '1', 'd'}, kGamma, kBeta}}, kY},
    {"softmax_cross_entropy", {{kLogits, kLabels, kSplits}}, {"R", '3', '3', kF64}, true},
    {"softmax_cross_entropy_gradient",
     {{kLogits, kLabels, kSplits}},
     {"dX", 'n', 'c'},
     false,
     nullptr,
     kLabelled},
    {"softmax_cross_entropy_weighted",
     {{kLogits, kLabels, kSplits, kWeights}},
     {"R", '3', '4', kF64},
     true},
    {"softmax_cross_entropy_weighted_gradient",
     {{kLogits, kLabels, kSplits, kWeights}},
     {"dX", 'n', 'c'},
     false,
     nullptr,
     CountOf::kLabelWeights},
    {"sigmoid_cross_entropy", {{kLogits, kBits, kSplits}}, {"R", '3', '3', kF64}, true},
    {"sigmoid_cross_entropy_gradient",
     {{kLogits, kBits, kSplits}},
     {"dX", 'n', 'c'},
     false,
     nullptr,
     kLabelled},
    {"sigmoid_cross_entropy_weighted",
     {{kLogits, kBits, kSplits, kWeights}},
     {"R", '3', '3', kF64},
     true},
    {"sigmoid_cross_entropy_weighted_gradient",
     {{kLogits, kBits, kSplits, kWeights}},
     {"dX", 'n', 'c'},
     false,
     nullptr,
     kLabelled},
    {"value_loss", {{kLogits, kValues, kSplits}}, {"R", '3', '2', kF64}, true, value_is_value_loss},
    {"value_loss_gradient",
     {{kLogits, kValues, kSplits}},
     {"dX", 'n', 'c'},
     false,
     value_is_value_loss,
     kLabelled},
};

DType dtype_of(OperandType type, DType real) {
  switch (type) {
    case OperandType::kReal:
    case OperandType::kAny:
      return real;
    case OperandType::kF32:
      return DType::kF32;
    case OperandType::kF64:
      return DType::kF64;
    case OperandType::kI32:
      return DType::kI32;
    case OperandType::kI64:
      return DType::kI64;
    case OperandType::kU8:
      return DType::kU8;
  }
  return real;
}

// Binds the letters of shapes to extents as operands are checked. Batches of edges call kernels
// with a few hundred rows: it divides nothing and allocates nothing.
class CallChecker {
 public:
  CallChecker(const RowKernelSpec& spec, DType real, bool transpose)
      : spec_(spec), real_(real), transpose_(transpose) {}

  void check(const OperandSpec& operand, const MatrixView& view) {
    const bool swap = operand.transposable && transpose_;
    expect(has_type(operand, view.dtype), operand, "type");
    bind(swap ? operand.cols : operand.rows, view.rows, operand);
    bind(swap ? operand.rows : operand.cols, view.cols, operand);
    expect(view.slice_width > 0, operand, "slice width");
    const bool slices = operand.rows == 'n' && view.slice_width == kSliceWidth;
    expect(slices || view.cols <= view.slice_width, operand, "slices");
    const std::int64_t last_cols = slices ? (view.cols - 1) % kSliceWidth + 1 : view.cols;
    expect(view.last_stride >= last_cols, operand, "stride");
  }

  void check_rule(const Attributes& attributes) const {
    expect(spec_.rule == nullptr || spec_.rule(extents_, attributes), spec_.output,
           "extents or attributes");
  }

  void expect(bool is_met, const OperandSpec& operand, const char* what) const {
    if (!is_met) [[unlikely]]
      fail(operand, what);
  }

  std::int64_t rows() const { return extents_['n']; }

 private:
  bool has_type(const OperandSpec& operand, DType dtype) {
    if (operand.type != OperandType::kAny) return dtype == dtype_of(operand.type, real_);
    if (!any_) any_ = dtype;
    return dtype == *any_;
  }

  [[noreturn]] void fail(const OperandSpec& operand, const char* what) const {
    std::string message("operator ");
    message.append(spec_.name).append(": wrong ").append(what).append(" of ").append(operand.name);
    check_failed(message.c_str(), __FILE__, __LINE__);
  }

  void bind(char letter, std::int64_t extent, const OperandSpec& operand) {
    if (letter >= '1' && letter <= '9') {
      expect(extent == letter - '0', operand, "shape");
    } else if (extents_.is_bound(letter)) {
      expect(extent == extents_[letter], operand, "shape");
    } else {
      expect(extent >= (letter == 'n' ? 0 : 1), operand, "shape");
      extents_.bind(letter, extent);
    }
  }

  const RowKernelSpec& spec_;
  DType real_;
  bool transpose_;
  std::optional<DType> any_;  // of operands of kAny
  Extents extents_;
};

}  // namespace

std::span<const RowKernelSpec> row_kernel_specs() {
  static const std::vector<RowKernelSpec> specs = [] {
    std::vector<RowKernelSpec> all;
    for (const std::span<const RowKernelSpec> part :
         {std::span<const RowKernelSpec>(kElementwise), {kColumnGroups}, {kNormsAndLosses}}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return specs;
}

const RowKernelSpec& row_kernel_spec(std::string_view name) {
  for (const RowKernelSpec& spec : row_kernel_specs()) {
    if (spec.name == name) return spec;
  }
  const std::string message = "no built-in row operator is named '" + std::string(name) + "'";
  check_failed(message.c_str(), __FILE__, __LINE__);
}

CountOf count_of(std::string_view name) {
  for (const RowKernelSpec& spec : row_kernel_specs()) {
    if (spec.name == name) return spec.count;
  }
  return CountOf::kNone;
}

double work_of_element(std::string_view name) {
  struct Work {
    std::string_view name;
    double elements;
  };
  constexpr Work kWork[] = {
      {"dropout", 1},
      {"edge_dropout", 0.56},
      {"sigmoid", 0.74},
      {"tanh", 0.64},
      {"elu", 0.46},
      {"gelu", 1.14},
      {"gelu_gradient", 1.28},
      {"exp", 0.56},
      {"scale_heads", 0.42},
      {"softmax_normalize", 0.44},
      {"dot_sum", 0.44},
      {"place_type", 0.5},
      {"gru", 0.82},
      {"gru_input_gradient", 1.54},
      {"gru_hidden_gradient", 1.54},
      {"gru_state_gradient", 0.86},
      {"layer_norm", 0.78},
      {"layer_norm_gradient", 1.54},
      {"layer_norm_gamma_gradient", 0.8},
      {"softmax_cross_entropy", 2.6},
      {"softmax_cross_entropy_gradient", 3.2},
      {"softmax_cross_entropy_weighted", 2.6},
      {"softmax_cross_entropy_weighted_gradient", 3.2},
      {"sigmoid_cross_entropy", 2.6},
      {"sigmoid_cross_entropy_gradient", 0.8},
      {"sigmoid_cross_entropy_weighted", 11},
      {"sigmoid_cross_entropy_weighted_gradient", 0.8},
      {"value_loss", 2.6},
      {"value_loss_gradient", 0.68},
  };
  for (const Work& work : kWork) {
    if (work.name == name) return work.elements;
  }
  return 0;
}

std::int64_t check_call(const RowKernelSpec& spec, DType real, const OperatorCall& call) {
  CallChecker checker(spec, real, call.attributes.transpose);
  std::size_t count = 0;
  while (count < spec.inputs.size() && !spec.inputs[count].name.empty()) ++count;
  checker.expect(call.inputs.size() == count, spec.inputs[0], "number of inputs, from");
  checker.expect(call.outputs.size() == 1, spec.output, "number of outputs, not one");
  for (std::size_t i = 0; i < count; ++i) checker.check(spec.inputs[i], call.inputs[i]);
  checker.check(spec.output, call.outputs[0]);
  checker.check_rule(call.attributes);
  return checker.rows();
}

}  // namespace ooc
