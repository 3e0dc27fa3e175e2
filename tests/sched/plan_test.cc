#include "sched/plan.h"

#include <algorithm>
#include <catch2/catch.hpp>

using namespace ooc;

namespace {

constexpr std::int64_t kVertices = 40000;

ValueId add(Program& program, const std::string& name, ValueKind kind, std::int64_t cols) {
  program.values.push_back({name, kind, kind == ValueKind::kVertex ? 0 : 1, cols, DType::kF32});
  return static_cast<ValueId>(program.values.size()) - 1;
}

// The sum of the neighbours' rows.
Propagation sum_of(Program& program, Direction direction, ValueId from, ValueId to) {
  const ValueId edge = add(program, "edge", ValueKind::kEdge, 40);
  return {direction, false, {{EdgeLoad::kStreamed, from, edge}}, {}, {{Fold::kSum, {edge}, {to}}}};
}

// x -> a (row) -> propagate -> b -> c (row) -> propagate -> d: four tensors of lifetimes
// [0,1], [1,1], [1,2], [2,2], and a scratch value s.
struct Chain {
  Program program;
  ValueId x, a, b, s, c, d, sum;

  Chain() {
    x = add(program, "x", ValueKind::kInput, 40);
    a = add(program, "a", ValueKind::kVertex, 40);
    b = add(program, "b", ValueKind::kVertex, 40);
    s = add(program, "s", ValueKind::kVertex, 40);
    c = add(program, "c", ValueKind::kVertex, 40);
    d = add(program, "d", ValueKind::kVertex, 40);
    sum = add(program, "sum", ValueKind::kReduction, 40);
    program.stages.resize(3);
    program.stages[0].steps = {{"relu", {x}, {a}, {}}};
    program.stages[1].propagation = sum_of(program, Direction::kIn, a, b);
    program.stages[1].steps = {{"relu", {b}, {s}, {}}, {"relu", {s}, {c}, {}}};
    program.stages[2].propagation = sum_of(program, Direction::kOut, c, d);
    program.stages[2].steps = {{"column_sum", {d}, {sum}, {}}};
  }
};

GraphCounts counts() { return {{kVertices, 100000, 16384, 65536, 3}, 1000, 2000}; }

const Residence& residence(const Plan& plan, ValueId value) {
  for (const Residence& tensor : plan.residences) {
    if (tensor.value == value) return tensor;
  }
  FAIL("value " << value << " is not resident");
  return plan.residences.front();
}

}  // namespace

TEST_CASE("plan: only what crosses passes is resident, and places are shared") {
  const Chain chain;
  const Plan plan = make_plan(chain.program, counts());
  CHECK(plan.residences.size() == 4);  // a, b, c, d; not s
  const std::int64_t one = residence(plan, chain.a).bytes;
  CHECK(one >= kVertices * 40 * 4);
  CHECK(one < kVertices * 40 * 4 + 8192);
  CHECK(plan.arena_bytes == 3 * one);  // a, b and c at once; d takes a's or b's place
  for (const Residence& p : plan.residences) {
    for (const Residence& q : plan.residences) {
      if (p.value == q.value || p.last_pass < q.first_pass || q.last_pass < p.first_pass) continue;
      INFO(p.value << " and " << q.value << " are there together");
      CHECK((p.offset + p.bytes <= q.offset || q.offset + q.bytes <= p.offset));
    }
  }
  REQUIRE(plan.passes[1].scratch.size() == 1);
  CHECK(plan.passes[1].scratch[0].value == chain.s);
  CHECK(plan.passes[2].reductions == std::vector<ValueId>{chain.sum});
}

TEST_CASE("plan: outputs stay to the end") {
  Chain chain;
  chain.program.outputs = {chain.a};
  const Plan plan = make_plan(chain.program, counts());
  CHECK(residence(plan, chain.a).last_pass == 2);
  CHECK(plan.arena_bytes == 3 * residence(plan, chain.a).bytes);  // d takes b's place alone
  CHECK(residence(plan, chain.d).offset == residence(plan, chain.b).offset);
}

TEST_CASE("plan: bytes read are inputs and the edges of each propagation's direction") {
  const Chain chain;
  const Plan plan = make_plan(chain.program, counts());
  CHECK(plan.passes[0].bytes_read == kVertices * 40 * 4);
  CHECK(plan.passes[1].bytes_read == 1000);
  CHECK(plan.passes[2].bytes_read == 2000);
  CHECK(plan.bytes_read == kVertices * 40 * 4 + 3000);
}

TEST_CASE(
    "plan: an input of another stored type is converted in scratch and read as it is stored") {
  const Chain chain;
  GraphCounts graph = counts();
  graph.stored_dtypes["x"] = DType::kF32;
  const Plan in_place = make_plan(chain.program, graph);
  CHECK(in_place.passes[0].scratch.empty());
  graph.stored_dtypes["x"] = DType::kBF16;
  const Plan plan = make_plan(chain.program, graph);
  const Pass& pass = plan.passes[0];
  REQUIRE(pass.scratch.size() == 1);
  CHECK(pass.scratch[0].value == chain.x);
  CHECK(pass.scratch[0].converted);
  CHECK(std::find(pass.tensors.begin(), pass.tensors.end(), chain.x) == pass.tensors.end());
  CHECK(pass.scratch_bytes >= pass.group_rows * 40 * 4);
  CHECK(pass.bytes_read == kVertices * 40 * 2);
  CHECK(plan.bytes_read == in_place.bytes_read - kVertices * 40 * 2);
}

TEST_CASE("plan: row groups don't depend on the type an input is stored in, however wide") {
  Chain chain;
  chain.program.values[static_cast<std::size_t>(chain.x)].cols = 20000;
  GraphCounts graph = counts();
  const std::int64_t in_place = make_plan(chain.program, graph).passes[0].group_rows;
  graph.stored_dtypes["x"] = DType::kF16;
  const Pass converted = make_plan(chain.program, graph).passes[0];
  CHECK(converted.group_rows == in_place);
  CHECK(converted.scratch_bytes <= 32 << 20);
}

TEST_CASE("plan: row groups shrink for wide scratch and never depend on the span group") {
  Chain chain;
  const Plan narrow = make_plan(chain.program, counts());
  CHECK(narrow.passes[1].group_rows == 2048);
  for (Value& value : chain.program.values) value.cols = 20000;
  PlanOptions options;
  options.span_group = 1;
  const Plan wide = make_plan(chain.program, counts(), options);
  CHECK(wide.passes[1].group_rows == 256);
  CHECK(wide.passes[1].scratch_bytes <= 32 << 20);
  CHECK(wide.passes[1].span_group == 1);
  CHECK(make_plan(chain.program, counts()).passes[1].group_rows == 256);
}

TEST_CASE("plan: a vertex tensor's slices lie behind each other, 64-byte aligned") {
  const TensorLayout layout{1001, 70, 256};
  CHECK(resident_slice_offset(layout, DType::kF32, 0) == 0);
  CHECK(resident_slice_offset(layout, DType::kF32, 1) == round_up(1001 * 32 * 4, 64));
  CHECK(resident_bytes(layout, DType::kF32) ==
        2 * round_up(1001 * 32 * 4, 64) + round_up(1001 * 8 * 4, 64));
}
