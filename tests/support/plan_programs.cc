#include "tests/support/plan_programs.h"

namespace ooc::test {

ValueId ProgramBuilder::add(const std::string& name, ValueKind kind, std::int64_t cols,
                            std::int64_t rows, DType dtype) {
  program.values.push_back({name, kind, kind == ValueKind::kParameter ? rows : 1, cols, dtype});
  if (kind == ValueKind::kReduction) program.values.back().rows = rows;
  return static_cast<ValueId>(program.values.size()) - 1;
}

Stage& ProgramBuilder::stage(const std::string& name) {
  program.stages.push_back({name, {}, {}});
  return program.stages.back();
}

void ProgramBuilder::row(const std::string& op, std::vector<ValueId> inputs,
                         std::vector<ValueId> outputs) {
  program.stages.back().steps.push_back({op, std::move(inputs), std::move(outputs), {}});
}

void ProgramBuilder::propagate(Direction direction, ValueId from, ValueId to, bool loops) {
  const std::int64_t cols = program.values[static_cast<std::size_t>(from)].cols;
  const ValueId edge = add("edge", ValueKind::kEdge, cols);
  program.stages.back().propagation = Propagation{
      direction, loops, {{EdgeLoad::kStreamed, from, edge}}, {}, {{Fold::kSum, {edge}, {to}}},
      cols};
}

void ProgramBuilder::scale_edges(ValueId factor) {
  Propagation& work = *program.stages.back().propagation;
  ValueId& summed = work.folds[0].inputs[0];
  const ValueId edge = add("factor at the edge", ValueKind::kEdge, 1);
  const ValueId scaled = add("scaled", ValueKind::kEdge, work.slice_local_cols);
  work.inputs.push_back({EdgeLoad::kResident, factor, edge});
  work.steps.push_back({"scale_rows", {summed, edge}, {scaled}, {}});
  summed = scaled;
}

Program train_program(int layers, std::int64_t features, std::int64_t hidden,
                      std::int64_t classes) {
  ProgramBuilder b;
  const ValueId x = b.add("features", ValueKind::kInput, features);
  const ValueId scale = b.add("in_scale", ValueKind::kInput, 1);
  const ValueId edge_scale = b.add("edge_scale", ValueKind::kInput, 1);
  const ValueId labels = b.add("labels", ValueKind::kInput, 1, 1, DType::kI32);
  const ValueId splits = b.add("splits", ValueKind::kInput, 1, 1, DType::kU8);
  std::vector<ValueId> inputs{x}, weights, sums;
  std::vector<std::int64_t> widths{features};
  for (int layer = 0; layer < layers; ++layer) {
    const std::int64_t in = widths.back(), out = layer + 1 == layers ? classes : hidden;
    const std::string number = std::to_string(layer + 1);
    const ValueId w = b.add("W" + number, ValueKind::kParameter, out, in);
    const ValueId z = b.add("z" + number, ValueKind::kVertex, out);
    const ValueId a = b.add("a" + number, ValueKind::kVertex, out);
    b.stage("transform " + number);
    b.row("matmul", {inputs.back(), w}, {z});
    b.stage("aggregate " + number);
    b.propagate(Direction::kIn, z, a, true);
    b.scale_edges(edge_scale);
    const ValueId h = b.add("h" + number, ValueKind::kVertex, out);
    b.row("scale_rows", {a, scale}, {h});
    weights.push_back(w);
    inputs.push_back(h);
    widths.push_back(out);
  }
  const ValueId loss = b.add("loss", ValueKind::kReduction, 3, 3, DType::kF64);
  b.row("softmax_cross_entropy", {inputs.back(), labels, splits}, {loss});
  ValueId gradient = b.add("d_logits", ValueKind::kVertex, classes);
  b.row("softmax_cross_entropy_gradient", {inputs.back(), labels, splits}, {gradient});
  for (int layer = layers; layer-- > 0;) {
    const auto at = static_cast<std::size_t>(layer);
    const std::string number = std::to_string(layer + 1);
    const ValueId dz = b.add("dz" + number, ValueKind::kVertex, widths[at + 1]);
    b.stage("gradient " + number);
    b.propagate(Direction::kOut, gradient, dz, true);
    const ValueId dw = b.add("dW" + number, ValueKind::kReduction, widths[at + 1], widths[at]);
    b.row("matmul_reduce", {inputs[at], dz}, {dw});
    if (layer == 0) break;
    gradient = b.add("dh" + number, ValueKind::kVertex, widths[at]);
    b.row("matmul", {dz, weights[at]}, {gradient});
  }
  b.program.name = "training";
  return b.program;
}

Program hoisted_program(std::int64_t features, std::int64_t hidden, std::int64_t classes) {
  ProgramBuilder b;
  const ValueId p = b.add("P", ValueKind::kInput, features);
  const ValueId scale = b.add("in_scale", ValueKind::kInput, 1);
  const ValueId labels = b.add("labels", ValueKind::kInput, 1, 1, DType::kI32);
  const ValueId splits = b.add("splits", ValueKind::kInput, 1, 1, DType::kU8);
  const ValueId w1 = b.add("W1", ValueKind::kParameter, hidden, features);
  const ValueId w2 = b.add("W2", ValueKind::kParameter, classes, hidden);
  const ValueId h1 = b.add("h1", ValueKind::kVertex, hidden);
  const ValueId z2 = b.add("z2", ValueKind::kVertex, classes);
  b.stage("transform");
  b.row("matmul", {p, w1}, {h1});
  b.row("matmul", {h1, w2}, {z2});
  const ValueId a2 = b.add("a2", ValueKind::kVertex, classes);
  const ValueId loss = b.add("loss", ValueKind::kReduction, 3, 3, DType::kF64);
  const ValueId da2 = b.add("da2", ValueKind::kVertex, classes);
  b.stage("aggregate");
  b.propagate(Direction::kIn, z2, a2);
  const ValueId logits = b.add("logits", ValueKind::kVertex, classes);
  b.row("scale_rows", {a2, scale}, {logits});
  b.row("softmax_cross_entropy", {logits, labels, splits}, {loss});
  b.row("softmax_cross_entropy_gradient", {logits, labels, splits}, {da2});
  const ValueId s2 = b.add("s2", ValueKind::kVertex, classes);
  const ValueId dz2 = b.add("dz2", ValueKind::kVertex, classes);
  b.stage("gradient");
  b.propagate(Direction::kOut, da2, s2);
  b.row("scale_rows", {s2, scale}, {dz2});
  const ValueId again = b.add("h1 again", ValueKind::kVertex, hidden);
  const ValueId dh1 = b.add("dh1", ValueKind::kVertex, hidden);
  const ValueId dw1 = b.add("dW1", ValueKind::kReduction, hidden, features);
  const ValueId dw2 = b.add("dW2", ValueKind::kReduction, classes, hidden);
  b.stage("weights");
  b.row("matmul", {p, w1}, {again});
  b.row("matmul_reduce", {again, dz2}, {dw2});
  b.row("matmul", {dz2, w2}, {dh1});
  b.row("matmul_reduce", {p, dh1}, {dw1});
  b.program.name = "hoisted";
  return b.program;
}

GraphCounts graph_counts(std::int64_t vertices, std::int64_t edges, std::int64_t block_rows) {
  GraphCounts graph;
  graph.edges = choose_edge_layout(vertices, edges, block_rows);
  graph.in.bytes = edges * 3 + vertices;
  graph.out.bytes = edges * 3 + vertices / 2;
  const std::int64_t chunks = graph.edges.chunk_count();
  for (EdgeBytes* side : {&graph.in, &graph.out}) {
    const std::int64_t bytes = side->bytes / chunks;  // the last one has what is left
    side->chunk_bytes.assign(static_cast<std::size_t>(chunks), bytes);
    side->chunk_bytes.back() += side->bytes - chunks * bytes;
  }
  return graph;
}

Program sparse_program() {
  Program program = train_program(2, 100, 200, 40);
  for (const Stage& stage : program.stages) {
    for (const RowStep& step : stage.steps) {
      Value& made = program.values[static_cast<std::size_t>(step.outputs[0])];
      made.train_only = made.name == "d_logits";
      made.density = made.train_only ? 1 : 0.5;
    }
  }
  return program;
}

}  // namespace ooc::test
