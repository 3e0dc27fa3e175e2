#include "tests/support/plan_checks.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>

namespace ooc::test {
namespace {

struct Located {
  const Pass* pass;
  int index;
};

std::vector<Located> passes_of(const Plan& plan) {
  std::vector<Located> passes;
  for (const Section& section : plan.sections) {
    for (const Pass& pass : section.passes) {
      passes.push_back({&pass, static_cast<int>(passes.size())});
    }
  }
  return passes;
}

bool alive(const Piece& piece, int pass) {
  if (piece.first_pass <= piece.last_pass) {
    return pass >= piece.first_pass && pass <= piece.last_pass;
  }
  return pass >= piece.first_pass || pass <= piece.last_pass;
}

bool is_write(UseRole role) { return role == UseRole::kAccumulator || role == UseRole::kOutput; }

}  // namespace

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

Program train_program(int layers, std::int64_t features, std::int64_t hidden,
                      std::int64_t classes) {
  ProgramBuilder b;
  const ValueId x = b.add("features", ValueKind::kInput, features);
  const ValueId scale = b.add("in_scale", ValueKind::kInput, 1);
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

std::int64_t Counted::bytes() const {
  std::int64_t sum = 0;
  for (const std::int64_t bytes : read) sum += bytes;
  for (const std::int64_t bytes : written) sum += bytes;
  return sum;
}

namespace {

// Walks two epochs of a plan unit by unit.
class Walker {
 public:
  Walker(const Plan& plan, const GraphCounts& graph)
      : plan_(plan), graph_(graph), passes_(passes_of(plan)), loaded_(plan.pieces.size()) {}

  Counted run() {
    for (int epoch = 0; epoch < 2; ++epoch) {
      counted_ = {std::vector<std::int64_t>(passes_.size()),
                  std::vector<std::int64_t>(passes_.size())};
      for (const Located& at : passes_) walk(*at.pass, at.index);
    }
    return counted_;
  }

 private:
  const PlannedTensor& tensor(int index) const {
    return plan_.tensors[static_cast<std::size_t>(index)];
  }

  // The piece that holds a unit in this pass; -1: none.
  int piece_of(int index, std::int64_t unit, int pass) const {
    const std::int64_t first = unit * tensor(index).unit_blocks;
    for (std::size_t i = 0; i < plan_.pieces.size(); ++i) {
      const Piece& piece = plan_.pieces[i];
      if (piece.tensor != index || !alive(piece, pass)) continue;
      if (first >= piece.first_block && first < piece.end_block) return static_cast<int>(i);
    }
    return -1;
  }

  void read(int index, std::int64_t unit, std::int64_t slice, int pass) {
    const PlannedTensor& from = tensor(index);
    const int piece = piece_of(index, unit, pass);
    if (piece >= 0) {
      auto& there = loaded_[static_cast<std::size_t>(piece)];
      if (!there.insert({unit, slice}).second) return;
    }
    if (!from.input) {
      INFO(from.name << " unit " << unit << " is read in pass " << pass << " but never stored");
      REQUIRE(unit * from.unit_blocks >= from.stored_from_block);
    }
    counted_.read[static_cast<std::size_t>(pass)] += unit_payload(from, unit, slice);
  }

  void write(int index, std::int64_t unit, std::int64_t slice, int pass) {
    const PlannedTensor& to = tensor(index);
    const int piece = piece_of(index, unit, pass);
    if (piece >= 0) loaded_[static_cast<std::size_t>(piece)].insert({unit, slice});
    if (unit * to.unit_blocks < to.stored_from_block) {
      INFO(to.name << " unit " << unit << " is neither kept nor stored");
      REQUIRE(piece >= 0);
      return;
    }
    counted_.written[static_cast<std::size_t>(pass)] += unit_payload(to, unit, slice);
  }

  void touch(const TensorUse& use, std::int64_t first, std::int64_t end,
             std::pair<std::int64_t, std::int64_t> slices, int pass) {
    if (use.tensor < 0) return;
    const std::int64_t unit_blocks = tensor(use.tensor).unit_blocks;
    for (std::int64_t s = slices.first; s < slices.second; ++s) {
      for (std::int64_t u = first / unit_blocks; u * unit_blocks < end; ++u) {
        is_write(use.role) ? write(use.tensor, u, s, pass) : read(use.tensor, u, s, pass);
      }
    }
  }

  void walk(const Pass& pass, int index) {
    for (std::size_t i = 0; i < plan_.pieces.size(); ++i) {
      const Piece& piece = plan_.pieces[i];
      const bool made = !tensor(piece.tensor).input && piece.first_pass == index;
      if (!alive(piece, index) || made) loaded_[i].clear();
    }
    const std::int64_t blocks = graph_.edges.block_count();
    const bool edges = pass.kind == PassKind::kPropagate;
    const std::int64_t all = edges ? ceil_div(pass.slice_local_cols, kSliceWidth) : 1;
    const std::int64_t step = edges && all > 0 ? pass.slices_at_once : 1;
    for (std::int64_t s = 0; s < std::max<std::int64_t>(all, 1); s += step) {
      const auto slices = [&](int t) {
        const std::int64_t count = tensor(t).layout.slice_count();
        if (!edges || all <= step || tensor(t).layout.cols != pass.slice_local_cols) {
          return std::pair<std::int64_t, std::int64_t>{0, count};
        }
        return std::pair<std::int64_t, std::int64_t>{s, std::min(s + step, count)};
      };
      for (std::int64_t first = 0; first < blocks; first += pass.part_blocks) {
        const std::int64_t end = std::min(first + pass.part_blocks, blocks);
        if (edges) walk_edges(pass, index, first, end);
        for (const TensorUse& use : pass.uses) {
          if (use.tensor < 0) continue;
          if (use.role == UseRole::kStreamed) touch(use, 0, blocks, slices(use.tensor), index);
        }
        for (const TensorUse& use : pass.uses) {
          if (use.tensor < 0 || use.role == UseRole::kStreamed) continue;
          touch(use, first, end, slices(use.tensor), index);
        }
      }
    }
  }

  void walk_edges(const Pass& pass, int index, std::int64_t first, std::int64_t end) {
    const Direction direction = graph_.symmetric ? Direction::kIn : pass.propagation.direction;
    const EdgeBytes& counts = direction == Direction::kIn ? graph_.in : graph_.out;
    std::int64_t kept = 0;
    for (const EdgePiece& piece : plan_.edge_pieces) {
      if (piece.direction == direction) kept = piece.end_chunk;
    }
    const std::int64_t chunks = graph_.edges.chunk_count();
    for (std::int64_t chunk = kept; chunk < chunks; ++chunk) {
      const std::int64_t panel = chunk % graph_.edges.panel_count();
      const std::int64_t begin = panel * graph_.edges.panel_blocks;
      if (begin >= end || begin + graph_.edges.panel_blocks <= first) continue;
      counted_.read[static_cast<std::size_t>(index)] +=
          counts.chunk_bytes[static_cast<std::size_t>(chunk)];
    }
  }

  const Plan& plan_;
  const GraphCounts& graph_;
  std::vector<Located> passes_;
  std::vector<std::set<std::pair<std::int64_t, std::int64_t>>> loaded_;  // units by piece
  Counted counted_;
};

struct Held {
  Region memory;
  std::string name;
};

void check_regions(const Plan& plan, int pass_index, const Pass& pass) {
  std::vector<Held> held;
  for (const Piece& piece : plan.pieces) {
    if (alive(piece, pass_index)) {
      held.push_back({piece.memory, plan.tensors[static_cast<std::size_t>(piece.tensor)].name});
    }
  }
  for (const EdgePiece& piece : plan.edge_pieces) held.push_back({piece.memory, "edges"});
  for (const TensorUse& use : pass.uses) held.push_back({use.memory, "use"});
  held.push_back({pass.edge_ring, "edge ring"});
  std::sort(held.begin(), held.end(),
            [](const Held& a, const Held& b) { return a.memory.offset < b.memory.offset; });
  std::int64_t end = 0;
  for (const Held& at : held) {
    if (at.memory.bytes == 0) continue;
    INFO(at.name << " in pass " << pass_index);
    REQUIRE(at.memory.offset % 4096 == 0);
    REQUIRE(at.memory.offset >= end);
    end = at.memory.offset + at.memory.bytes;
  }
  REQUIRE(end <= plan.arena_bytes);
}

void check_pieces(const Plan& plan, int passes) {
  for (const Piece& piece : plan.pieces) {
    const PlannedTensor& tensor = plan.tensors[static_cast<std::size_t>(piece.tensor)];
    const std::int64_t blocks = tensor.layout.block_count();
    INFO(tensor.name << " " << piece.first_block << " to " << piece.end_block);
    REQUIRE(piece.first_block < piece.end_block);
    REQUIRE(piece.first_block % tensor.unit_blocks == 0);
    REQUIRE((piece.end_block == blocks || piece.end_block % tensor.unit_blocks == 0));
    REQUIRE(piece.memory.bytes ==
            rows_bytes(tensor, piece.first_block, piece.end_block, 0, tensor.layout.slice_count()));
    for (const Piece& other : plan.pieces) {
      if (&other == &piece || other.tensor != piece.tensor) continue;
      for (int pass = 0; pass < passes; ++pass) {
        if (!alive(piece, pass) || !alive(other, pass)) continue;
        REQUIRE((piece.end_block <= other.first_block || other.end_block <= piece.first_block));
      }
    }
  }
}

}  // namespace

Counted count_bytes(const Plan& plan, const GraphCounts& graph) {
  return Walker(plan, graph).run();
}

void check_plan(const std::vector<const Program*>& programs, const Plan& plan,
                const GraphCounts& graph, const PlanOptions& options) {
  REQUIRE(plan.sections.size() == programs.size());
  const std::vector<Located> passes = passes_of(plan);
  for (const Located& at : passes) check_regions(plan, at.index, *at.pass);
  check_pieces(plan, static_cast<int>(passes.size()));
  const Counted counted = count_bytes(plan, graph);
  for (const Located& at : passes) {
    INFO("pass " << at.index << " " << at.pass->name);
    CHECK(at.pass->bytes_read == counted.read[static_cast<std::size_t>(at.index)]);
    CHECK(at.pass->bytes_written == counted.written[static_cast<std::size_t>(at.index)]);
  }
  CHECK(plan.bytes_read + plan.bytes_written == counted.bytes());
  if (options.memory_bytes == 0) return;
  CHECK(plan.arena_bytes + options.workers * plan.scratch_bytes + plan.reduction_bytes <=
        options.memory_bytes);
}

}  // namespace ooc::test
