#include "sched/plan/cost/cost.h"

#include <algorithm>

#include "sched/plan/passes/stages.h"

namespace ooc {
namespace {

double step_seconds(const PassBuilder& builder, const StageShape& stage,
                    const std::vector<RowStep>& steps, double rows) {
  const Program& program = builder.program(stage.section);
  const MachineRates& rates = builder.options().rates;
  const ProductWork products = row_product_work(program, steps);
  return rows * (row_dropout_elements(program, steps) / rates.dropout +
                 products.products / rates.multiply_adds + products.sums / rates.row_sums);
}

// Of a processor, while storage's bytes move: what the system takes, the threads that hand on, and
// the memory's bandwidth (bench/notes/planning.md).
constexpr double kBusyMoving = 0.3;

double overlapped(double transfers, double compute, double depth) {
  if (depth < 1) return transfers + compute / depth;
  return std::max(transfers, compute) + std::min(transfers, compute) / (2 * depth - 1);
}

// Of a pass, of what it writes: sums that leave after each destination range.
std::int64_t leaving_bytes(const PassDraft& pass, const Traffic& traffic) {
  return !pass.rows && pass.dst_range_count() > 1 ? traffic.written : 0;
}

}  // namespace

PhaseSeconds compute_seconds(const PassBuilder& builder, const PassDraft& pass, std::int64_t spans,
                             const Traffic& packed) {
  const StageShape& stage = builder.stages()[static_cast<std::size_t>(pass.stage)];
  const MachineRates& rates = builder.options().rates;
  const GraphCounts& graph = builder.graph();
  PhaseSeconds seconds;
  if (pass.edges) {
    const Propagation& propagation = stage.pass.propagation;
    const double edges = static_cast<double>(graph.edges.edges) * edge_share(propagation, graph);
    const double bytes = gather_bytes(builder.program(stage.section), stage.pass, graph, spans);
    seconds.edges = builder.edge_share() *
                    (bytes / rates.gather + step_seconds(builder, stage, propagation.steps, edges));
  }
  if (pass.rows) {
    const auto vertices = static_cast<double>(graph.edges.vertices);
    seconds.rows = builder.row_share() *
                   (stage.elementwise_bytes / rates.elementwise +
                    step_seconds(builder, stage, stage.pass.steps, vertices) -
                    step_seconds(builder, stage, stage.skipped_steps, stage.skipped_rows));
  }
  const std::int64_t leaving = leaving_bytes(pass, packed);
  const auto packing = [&](std::int64_t bytes) {
    return static_cast<double>(bytes) / rates.packing;
  };
  seconds.edges += packing(packed.resident + packed.edges + leaving);
  seconds.rows += packing(packed.rows + packed.written - leaving);
  return seconds;
}

TransferRates storage_rates(const MachineRates& rates) {
  return {rates.storage_read, rates.storage_write, rates.storage_both};
}

TransferRates link_rates(const MachineRates& rates) {
  return {rates.to_device, rates.from_device, rates.to_device + rates.from_device};
}

PhaseSeconds transfer_seconds(const PassDraft& pass, const Traffic& traffic,
                              const TransferRates& rates) {
  const auto seconds = [&](std::int64_t read, std::int64_t written) {
    const auto in = static_cast<double>(read), out = static_cast<double>(written);
    return std::max({in / rates.read, out / rates.write, (in + out) / rates.both});
  };
  const std::int64_t leaving = leaving_bytes(pass, traffic);
  return {seconds(traffic.resident, 0), seconds(traffic.edges, 0),
          seconds(traffic.rows, traffic.written - leaving), seconds(0, leaving)};
}

std::vector<PhaseSeconds> transfers_of(const PlanProblem& problem, const ResidentSet& kept,
                                       const TransferRates& rates) {
  std::vector<PhaseSeconds> seconds;
  for (const Traffic& traffic : problem.traffic(kept, Zeros::kLeftOut)) {
    const PassDraft& pass = problem.draft().passes[seconds.size()];
    seconds.push_back(transfer_seconds(pass, traffic, rates));
  }
  return seconds;
}

std::vector<PhaseSeconds> compute_of(const PlanProblem& problem, const ResidentSet& kept,
                                     const std::vector<PhaseSeconds>& transfers,
                                     const std::vector<std::int64_t>& spans) {
  const PlanOptions& options = problem.builder().options();
  const std::vector<Traffic> packed = problem.traffic(kept, Zeros::kOfPacked);
  std::vector<PhaseSeconds> seconds;
  for (const PassDraft& pass : problem.draft().passes) {
    const std::size_t index = seconds.size();
    seconds.push_back(compute_seconds(problem.builder(), pass, spans[index], packed[index]));
  }
  if (options.device) return seconds;
  const double taken = kBusyMoving / static_cast<double>(options.workers);
  for (std::size_t pass = 0; pass < seconds.size(); ++pass) {
    seconds[pass].edges += taken * (transfers[pass].edges + transfers[pass].leaving);
    seconds[pass].rows += taken * transfers[pass].rows;
  }
  return seconds;
}

std::vector<std::int64_t> windows_of(const Plan& plan) {
  std::vector<std::int64_t> spans;
  for (const Section& section : plan.sections) {
    for (const Pass& pass : section.passes) spans.push_back(pass.span_group);
  }
  return spans;
}

PhaseSeconds slower(const PhaseSeconds& a, const PhaseSeconds& b) {
  return {std::max(a.resident, b.resident), std::max(a.edges, b.edges), std::max(a.rows, b.rows),
          std::max(a.leaving, b.leaving)};
}

double overlapped_seconds(const PhaseSeconds& transfers, const PhaseSeconds& compute,
                          const SlotDepth& depth, std::int64_t pipelined) {
  const double folded = overlapped(transfers.edges, compute.edges, depth.edges);
  const double left =
      std::max(folded + std::max(0.0, transfers.leaving - depth.window * compute.edges),
               transfers.edges + transfers.leaving);
  const double apart =
      transfers.resident + left + overlapped(transfers.rows, compute.rows, depth.rows);
  if (pipelined <= 1) return apart;
  // The first destination range's spans have no steps beside them, the last one's steps no spans.
  // What edges read of a destination range's own rows comes before it is folded, beside steps
  // alone.
  const double both = std::max(1.0, std::min(depth.edges, depth.rows));
  const double together =
      std::max({overlapped(transfers.sum(), compute.sum(), both), transfers.resident + left,
                overlapped(transfers.rows, compute.rows, depth.rows)});
  const double share = 1 / static_cast<double>(pipelined);
  return share * apart + (1 - share) * std::min(apart, together);
}

std::int64_t pipelined_dst_ranges(const PassDraft& pass) {
  return pass.dst_ranges_at_once > 1 ? pass.dst_range_count() : 1;
}

}  // namespace ooc
