// What predictions are made of: what moves in which phase of a pass, and how that overlaps.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "sched/plan/cost/cost.h"
#include "sched/plan/io_chunks.h"
#include "sched/plan/search/choice.h"
#include "sched/plan/search/planner.h"
#include "tests/support/device_memory.h"
#include "tests/support/plan_checks.h"
#include "tests/support/plan_levels.h"

using namespace ooc;
using namespace ooc::test;

namespace {

constexpr std::int64_t kMiB = 1 << 20;

// What is left of bytes of a tensor.
std::int64_t packed(const PlannedTensor& tensor, Zeros zeros, std::int64_t bytes) {
  if (zeros == Zeros::kMoved) return bytes;
  if (zeros == Zeros::kOfPacked) return tensor.packed < 1 ? bytes : 0;
  return static_cast<std::int64_t>(tensor.packed * static_cast<double>(bytes));
}

// Of the whole I/O chunks that the pass' destination ranges touch.
std::int64_t bytes_by_dst_ranges(const PlanProblem& problem, const PassDraft& pass,
                                 const PlannedTensor& tensor) {
  const EdgeLayout& layout = problem.builder().graph().edges;
  const std::int64_t blocks = tensor.layout.block_count(), io_chunk = tensor.io_chunk_blocks;
  const std::int64_t dst_range =
      pass.edges ? pass.dst_range_blocks * blocks_in(layout, tensor) : blocks;
  std::int64_t bytes = 0;
  for (std::int64_t first = 0; first < blocks; first += dst_range) {
    const std::int64_t end = std::min(first + dst_range, blocks);
    bytes += payload_bytes(tensor, first / io_chunk * io_chunk,
                           std::min(round_up(end, io_chunk), blocks));
  }
  return bytes;
}

// By the uses alone, where nothing is kept.
Traffic expected_traffic(const PlanProblem& problem, int index, Zeros zeros) {
  const PassDraft& pass = problem.draft().passes[static_cast<std::size_t>(index)];
  Traffic traffic;
  for (const UseDraft& use : pass.uses) {
    if (use.tensor < 0) continue;
    const PlannedTensor& tensor = problem.draft().tensors[static_cast<std::size_t>(use.tensor)];
    const Timeline& line = problem.timelines()[static_cast<std::size_t>(use.tensor)];
    const std::int64_t all =
        packed(tensor, zeros, payload_bytes(tensor, 0, tensor.layout.block_count()));
    const std::int64_t once = packed(tensor, zeros, bytes_by_dst_ranges(problem, pass, tensor));
    const std::int64_t groups = use.sliced ? 1 : pass.groups;
    const bool made = use.role == UseRole::kAccumulator || use.role == UseRole::kOutput;
    if (use.role == UseRole::kResident)
      traffic.resident += (pass.dst_ranges > 1 ? groups : 1) * once;
    if (use.role == UseRole::kStreamed) traffic.edges += groups * pass.dst_ranges * all;
    if (use.role == UseRole::kRows) traffic.rows += once;
    if (made && line.interval_count() > 0) traffic.written += all;  // somebody wants it
  }
  if (!pass.edges || zeros == Zeros::kOfPacked) return traffic;
  const StageShape& stage = problem.builder().stages()[static_cast<std::size_t>(pass.stage)];
  traffic.edges +=
      pass.groups * problem.edges().sweep_bytes(stage.edge_file, pass.dst_range_blocks, 0);
  return traffic;
}

// Every tensor that the pass reads, once, in the first phase that needs it.
Traffic read_once(const PlanProblem& problem, int index) {
  std::map<int, UseRole> first;
  for (const UseDraft& use : problem.draft().passes[static_cast<std::size_t>(index)].uses) {
    if (use.tensor < 0) continue;
    UseRole& role = first.try_emplace(use.tensor, use.role).first->second;
    if (use.role == UseRole::kResident) role = use.role;
    if (use.role == UseRole::kStreamed && role == UseRole::kRows) role = use.role;
  }
  Traffic traffic;
  for (const auto& [tensor, role] : first) {
    const PlannedTensor& of = problem.draft().tensors[static_cast<std::size_t>(tensor)];
    const std::int64_t bytes = payload_bytes(of, 0, of.layout.block_count());
    if (role == UseRole::kResident) traffic.resident += bytes;
    if (role == UseRole::kStreamed) traffic.edges += bytes;
    if (role == UseRole::kRows) traffic.rows += bytes;
  }
  return traffic;
}

}  // namespace

TEST_CASE("cost: what moves is counted in the phase in which its use needs it") {
  const Program program = sparse_program();
  GraphCounts graph = graph_counts(1 << 20, 16 << 20);
  graph.train_vertices = graph.edges.vertices / 4;
  PlanOptions options;
  options.memory_bytes = 400 * kMiB;
  const PassBuilder builder({&program}, graph, options);
  const EdgeTable edges(graph);
  int resident = 0, apart = 0;
  for (const std::int64_t dst_range_blocks : {16, 32, 0}) {
    for (const std::int64_t slices : {1, 0}) {
      const PlanProblem problem(
          builder, edges,
          std::vector<PassSplit>(program.stages.size(), {dst_range_blocks, slices}));
      for (const Zeros zeros : {Zeros::kMoved, Zeros::kLeftOut, Zeros::kOfPacked}) {
        const std::vector<Traffic> traffic = problem.traffic(problem.empty_residency(), zeros);
        for (int pass = 0; pass < problem.draft().pass_count(); ++pass) {
          INFO("part " << dst_range_blocks << " slices " << slices << " pass " << pass);
          const Traffic& counted = traffic[static_cast<std::size_t>(pass)];
          const Traffic expected = expected_traffic(problem, pass, zeros);
          const double margin = zeros == Zeros::kLeftOut ? 1000 : 0;  // rounding, sweep by sweep
          CHECK(counted.resident == Approx(expected.resident).epsilon(0).margin(margin));
          CHECK(counted.edges == Approx(expected.edges).epsilon(0).margin(margin));
          CHECK(counted.rows == Approx(expected.rows).epsilon(0).margin(margin));
          CHECK(counted.written == Approx(expected.written).epsilon(0).margin(margin));
          resident += counted.resident > 0 ? 1 : 0;
          apart += counted.edges > 0 && counted.rows == 0 && counted.written > 0 ? 1 : 0;
        }
      }
    }
  }
  CHECK(resident > 0);
  CHECK(apart > 0);
}

TEST_CASE("cost: what storage holds of rows with zeros, and what a piece holds is dense") {
  const Program program = sparse_program();
  GraphCounts graph = graph_counts(1 << 20, 16 << 20);
  graph.train_vertices = graph.edges.vertices / 4;
  PlanOptions options;
  options.memory_bytes = 400 * kMiB;
  const auto share = [&](const PlanProblem& problem, const std::string& name) {
    const std::vector<PlannedTensor>& tensors = problem.draft().tensors;
    return std::find_if(tensors.begin(), tensors.end(),
                        [&](const PlannedTensor& tensor) { return tensor.name == name; })
        ->packed;
  };
  const std::vector<PassSplit> splits(program.stages.size(), {16, 0});
  const PassBuilder builder({&program}, graph, options);
  const EdgeTable edges(graph);
  PlanProblem problem(builder, edges, splits);
  CHECK(share(problem, "features") == 1);
  CHECK(share(problem, "h1") == 0.5 + 1.0 / 32);
  CHECK(share(problem, "d_logits") == 0.25 + 1.0 / 32);

  // Half of each tensor is in memory while it is made, and stays on neither side.
  ResidentSet kept = problem.empty_residency();
  for (std::size_t t = 0; t < kept.tensors.size(); ++t) {
    const Timeline& line = problem.timelines()[t];
    if (!line.accesses[0].writes || line.accesses[0].pins) continue;
    kept.tensors[t].during[0] = whole_blocks(line, line.end_block / 2);
  }
  const std::int64_t most = epoch_bytes(problem, kept);
  CHECK(most == epoch_bytes(problem, problem.empty_residency()));
  const auto left_out = [&](const ResidentSet& residency) {
    std::int64_t sum = most;
    for (const Traffic& pass : problem.traffic(residency, Zeros::kLeftOut)) {
      sum -= pass.read() + pass.written;
    }
    return static_cast<double>(sum);
  };
  CHECK(left_out(problem.empty_residency()) > 0.1 * static_cast<double>(most));
  CHECK(left_out(kept) == Approx(left_out(problem.empty_residency()) / 2).epsilon(0.01));
  const auto of_packed = [&](const ResidentSet& residency) {
    std::int64_t sum = 0;
    for (const Traffic& pass : problem.traffic(residency, Zeros::kOfPacked)) {
      sum += pass.read() + pass.written;
    }
    return static_cast<double>(sum);
  };
  CHECK(of_packed(problem.empty_residency()) > 0.1 * static_cast<double>(most));
  CHECK(of_packed(kept) == Approx(of_packed(problem.empty_residency()) / 2).epsilon(0.01));

  options.device = true;  // rows cross the link with their zeros
  const PassBuilder on_device({&program}, graph, options);
  CHECK(share(PlanProblem(on_device, edges, splits), "h1") == 1);
}

TEST_CASE("cost: what memory above leaves to the one below moves in the same phases") {
  std::mt19937 random(5);
  const Program program = train_program(2, 100, 200, 40);
  const GraphCounts graph = graph_counts(120'000, 800'000, 16384);
  PlanOptions options;
  options.memory_bytes = 400 * kMiB;
  const PassBuilder builder({&program}, graph, options);
  const EdgeTable edges(graph);
  for (int round = 0; round < 40; ++round) {
    const std::vector<PassSplit> splits = random_splits(program, 2, random);
    const PlanProblem problem(builder, edges, splits);
    const ResidentSet kept = random_levels(problem, random);
    const PlanProblem below({{problem, kept}}, edges, 1);
    const std::vector<Traffic> above = problem.traffic(kept);
    const std::vector<Traffic> left = below.traffic(below.empty_residency());
    // All of it is there during each pass, and nothing between passes.
    ResidentSet held = problem.empty_residency();
    for (std::size_t t = 0; t < held.tensors.size(); ++t) {
      std::vector<std::int64_t>& during = held.tensors[t].during;
      std::fill(during.begin(), during.end(), problem.timelines()[t].end_block);
    }
    held.edge_chunks = {edges.chunk_count(), edges.chunk_count()};
    const std::vector<Traffic> once = problem.traffic(held);
    for (std::size_t p = 0; p < above.size(); ++p) {
      INFO("round " << round << " pass " << p);
      CHECK(left[p].resident == above[p].resident);
      CHECK(left[p].edges == above[p].edges);
      CHECK(left[p].rows == above[p].rows);
      CHECK(left[p].written == above[p].written);
      const Traffic expected = read_once(problem, static_cast<int>(p));
      CHECK(once[p].resident == expected.resident);
      CHECK(once[p].edges == expected.edges);
      CHECK(once[p].rows == expected.rows);
    }
  }
}

TEST_CASE("cost: transfers overlap the compute of their own phase, but for a share of it") {
  const TransferRates rates{100, 50, 120};
  PassDraft pass;
  pass.edges = pass.rows = true;
  const PhaseSeconds transfers = transfer_seconds(pass, {100, 400, 200, 100}, rates);
  CHECK(transfers.resident == Approx(1));
  CHECK(transfers.edges == Approx(4));
  CHECK(transfers.rows == Approx(2.5));  // both ways at once
  CHECK(transfers.leaving == 0);
  CHECK(transfer_seconds(pass, {0, 0, 200, 10}, rates).rows == Approx(2));
  CHECK(transfer_seconds(pass, {0, 0, 10, 200}, rates).rows == Approx(4));
  CHECK(overlapped_seconds(transfers, {0, 6, 1}, {2, 4}) ==
        Approx(1 + 6 + 4.0 / 3 + 2.5 + 1.0 / 7));
  // Without steps sums leave after each destination range.
  pass.rows = false;
  CHECK(transfer_seconds(pass, {0, 400, 0, 100}, rates).edges == Approx(4));  // there are none
  CHECK(transfer_seconds(pass, {0, 400, 0, 100}, rates).rows == Approx(2));
  pass.groups = 4;
  const PhaseSeconds leaving = transfer_seconds(pass, {100, 400, 0, 100}, rates);
  CHECK(leaving.resident == Approx(1));
  CHECK(leaving.edges == Approx(4));
  CHECK(leaving.leaving == Approx(2));
  CHECK(leaving.rows == 0);
  // Meanwhile a window of the next destination range's spans is folded; but what moves takes its
  // time.
  CHECK(overlapped_seconds({0, 0, 0, 2}, {0, 10, 0}, {1e9, 1e9, 0.1}) == Approx(10 + 1));
  CHECK(overlapped_seconds({0, 0, 0, 2}, {0, 10, 0}, {1e9, 1e9, 0.5}) == Approx(10));
  CHECK(overlapped_seconds({0, 20, 0, 2}, {0, 10, 0}, {1e9, 1e9, 0.5}) == Approx(22));
  CHECK(overlapped_seconds({0, 4, 0}, {0, 10, 0}, {1, 1}) == Approx(10 + 4));
  CHECK(overlapped_seconds({0, 0, 4}, {0, 0, 10}, {1, 0.5}) == Approx(20 + 4));
  const PhaseSeconds slow = slower({1, 5, 2, 3}, {2, 4, 3, 1});
  CHECK(slow.resident == 2);
  CHECK(slow.edges == 5);
  CHECK(slow.rows == 3);
  CHECK(slow.leaving == 3);
}

TEST_CASE("cost: in a pipeline the first part's spans and the last one's steps stand alone") {
  const PhaseSeconds transfers{1, 4, 10}, compute{0, 8, 2};
  const SlotDepth depth{1e9, 1e9};
  CHECK(overlapped_seconds(transfers, compute, depth) == Approx(1 + 8 + 10));
  CHECK(overlapped_seconds(transfers, compute, depth, 4) == Approx(19.0 / 4 + 15 * 3.0 / 4));
  // What would take longer beside each other than apart is no pipeline's fault.
  CHECK(overlapped_seconds({0, 5, 5}, {0, 5, 5}, {1e9, 1}, 2) <= Approx(15));
  // Workers that find no room for rows fold edges meanwhile: apart it takes 22.
  CHECK(overlapped_seconds({0, 0, 4}, {0, 10, 2}, {1e9, 0.25}, 2) == Approx((22 + 16) / 2.0));
}

TEST_CASE("cost: rings of the steps hold the same rows, to a unit") {
  const Program program = train_program(3, 100, 200, 40);
  const GraphCounts graph = graph_counts(1 << 20, 16 << 20);
  int shallower = 0;
  for (const std::int64_t budget : {80, 160, 320, 640}) {
    const Plan plan = make_plan({&program}, graph, {.memory_bytes = budget * kMiB, .workers = 2});
    for (const Pass& pass : plan.sections[0].passes) {
      INFO("budget " << budget << ", pass " << pass.name);
      std::int64_t most = -1, least = graph.edges.vertices, most_io_chunks = 0,
                   least_io_chunks = 1 << 20;
      for (const TensorUse& use : pass.uses) {
        if (memory_of(plan, pass, use).slots == 0 || use.role == UseRole::kStreamed) continue;
        const PlannedTensor& tensor = plan.tensors[static_cast<std::size_t>(use.tensor)];
        const std::int64_t io_chunk = tensor.io_chunk_blocks * tensor.layout.block_rows;
        const std::int64_t io_chunks =
            memory_of(plan, pass, use).slots / tensor.layout.slice_count();
        if (io_chunks == io_chunk_count(tensor)) continue;  // there are no more
        most = std::max(most, (io_chunks - 2) * io_chunk);
        least = std::min(least, (io_chunks - 1) * io_chunk);
        most_io_chunks = std::max(most_io_chunks, io_chunks);
        least_io_chunks = std::min(least_io_chunks, io_chunks);
      }
      CHECK(most < least);
      shallower += least_io_chunks < most_io_chunks ? 1 : 0;
    }
  }
  CHECK(shallower > 0);
}

TEST_CASE("cost: a ring is as deep as the rows it holds, in units of the widest ones") {
  const auto tensor = [](std::int64_t cols, std::int64_t block_rows, std::int64_t io_chunk_blocks) {
    PlannedTensor out;
    out.layout = {1 << 22, cols, block_rows};
    out.io_chunk_blocks = io_chunk_blocks;
    return out;
  };
  const std::vector<PlannedTensor> tensors = {tensor(128, 16384, 1), tensor(128, 8192, 1),
                                              tensor(1, 16384, 5)};
  const auto grain = [&](std::vector<int> used) {
    std::vector<TensorUse> uses{{UseRole::kStreamed, 0, 2}};
    for (const int at : used) uses.push_back({UseRole::kRows, 0, at});
    return RowGrain(8192, uses, tensors);
  };
  const RowGrain alike = grain({1, 2}), longer = grain({0, 1, 2});
  for (const auto& [slot_counts, expected] :
       {std::pair<SlotCounts, std::vector<std::int64_t>>{{1, 0, 0}, {1, 1, 1}},
        {{3, 0, 0}, {3, 5, 2}},
        {{3, 32 * kMiB, 0}, {4, 7, 2}}}) {
    for (std::size_t i = 0; i < 3; ++i)
      CHECK(longer.io_chunks(tensors[i], slot_counts) == expected[i]);
  }
  CHECK(longer.depth(tensors[0], 3, 8192) == Approx(3));
  CHECK(longer.depth(tensors[1], 5, 16384) == Approx(3));
  CHECK(longer.depth(tensors[2], 2, 8192) == Approx(6));
  CHECK(alike.io_chunks(tensors[1], {3, 0, 0}) == 3);
  CHECK(alike.depth(tensors[1], 3, 8192) == Approx(3));
  CHECK(alike.depth(tensors[2], 2, 8192) == Approx(11));
  // Sixteen workers have four steps of four groups in work.
  CHECK(rows_in_work(2, 8192, 2048) == 8192);
  CHECK(rows_in_work(16, 8192, 2048) == 4 * 8192);
  CHECK(alike.depth(tensors[1], 3, rows_in_work(16, 8192, 2048)) == Approx(3.0 / 4));
  PlannedTensor all = tensors[1];
  all.layout.rows = 3 * 8192;
  CHECK(alike.depth(all, 3, rows_in_work(16, 8192, 2048)) == Approx(1));
  CHECK(alike.depth(all, 2, rows_in_work(16, 8192, 2048)) == Approx(2.0 / 4));
}

TEST_CASE("cost: rings of edges hold the chunks of whole spans, or a few MiB of them") {
  GraphCounts graph = graph_counts(1 << 20, 16 << 20);
  EdgeLayout& edges = graph.edges;
  edges.panel_blocks = ceil_div(edges.block_count(), std::int64_t{5});
  REQUIRE(edges.panel_count() == 5);
  const EdgeSlots whole(edges, edges.block_count(), 1 << 20);
  CHECK(whole.span_chunks == 4);  // of five
  CHECK(whole.slots({1, 0, 0}) == 1);
  CHECK(whole.slots({3, 0, 0}) == 9);
  CHECK(whole.slots({3, 0, 16 << 20}) == 16);
  CHECK(whole.spans(9) == 3);
  CHECK(whole.spans(1) == 1);
  // A part of one panel's size may lie in two of them.
  CHECK(EdgeSlots(edges, edges.panel_blocks, 1 << 20).span_chunks == 2);
  CHECK(EdgeSlots(edges, 1, 1 << 20).span_chunks == 1);
  CHECK(EdgeSlots(edges, edges.block_count(), 5 << 20).span_chunks == 1);
}

TEST_CASE("cost: where memory is left rings hold steps for all workers, twice") {
  const Program program = train_program(2, 128, 128, 40);
  const GraphCounts graph = graph_counts(1 << 24, 64 << 20);
  const std::int64_t workers = 64;
  PlanOptions options{.strategy = Strategy::kNone, .memory_bytes = 24 * 1024 * kMiB};
  options.workers = workers;
  const Plan plan = make_plan({&program}, graph, options);
  check_plan({&program}, plan, graph, options);
  int all_slot_counts = 0;
  for (const Pass& pass : plan.sections[0].passes) {
    for (const TensorUse& use : pass.uses) {
      if (memory_of(plan, pass, use).slots == 0 || use.role == UseRole::kStreamed) continue;
      const PlannedTensor& tensor = plan.tensors[static_cast<std::size_t>(use.tensor)];
      const std::int64_t rows = memory_of(plan, pass, use).slots / tensor.layout.slice_count() *
                                tensor.io_chunk_blocks * tensor.layout.block_rows;
      INFO(pass.name << ", " << tensor.name << ": " << rows << " of " << pass.group_rows);
      CHECK(rows >= 2 * workers * pass.group_rows);
      ++all_slot_counts;
    }
  }
  CHECK(all_slot_counts > 4);
}

TEST_CASE("cost: rings hold whole steps") {
  const Program program = train_program(3, 100, 200, 40);
  const GraphCounts graph = graph_counts(1 << 20, 16 << 20);
  int all_slot_counts = 0, shallow = 0;
  for (const std::int64_t budget : {80, 160, 320, 640}) {
    const Plan plan = make_plan({&program}, graph, {.memory_bytes = budget * kMiB, .workers = 2});
    for (const Pass& pass : plan.sections[0].passes) {
      const auto index = static_cast<int>(&pass - plan.sections[0].passes.data());
      const SlotDepth two = slot_depth(plan, graph.edges, 2, index, pass);
      CHECK(two.edges >= 1);
      CHECK(two.rows >= 1);
      const SlotDepth many = slot_depth(plan, graph.edges, 64, index, pass);
      CHECK(many.edges == two.edges);
      CHECK(many.rows <= two.rows);
      shallow += many.rows < 1 ? 1 : 0;
      for (const TensorUse& use : pass.uses) {
        if (memory_of(plan, pass, use).slots == 0 || use.role == UseRole::kStreamed) continue;
        const PlannedTensor& tensor = plan.tensors[static_cast<std::size_t>(use.tensor)];
        CHECK(memory_of(plan, pass, use).slots % tensor.layout.slice_count() == 0);
        all_slot_counts += tensor.layout.slice_count() > 1 ? 1 : 0;
      }
    }
  }
  CHECK(all_slot_counts > 0);
  CHECK(shallow > 0);
}
