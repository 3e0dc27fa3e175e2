// What passes take on a machine: the predictions in seconds.
#pragma once

#include <vector>

#include "sched/plan/liveness/problem.h"

namespace ooc {

// What a pass does one after the other, in each destination range: what edges read of the
// destination range's own rows comes in; edges are folded while rows and edge chunks stream in;
// row-wise steps run while rows come and go. Transfers overlap with the compute of their own phase
// alone, unless two destination ranges are in memory at once. Where there are no steps, a
// destination range's sums leave, and the next one is folded into what they have left.
struct PhaseSeconds {
  double resident = 0, edges = 0, rows = 0, leaving = 0;

  double sum() const { return resident + edges + rows + leaving; }
};
// Of a pass's slots, of either phase: how many times what is in use at once the smallest one holds;
// of rows in the steps, what comes and goes at once (RowGrain, sched/plan/liveness/memory.h). Below
// 1 some workers stand still.
struct SlotDepth {
  double edges = 0, rows = 0;
  double window =
      1;  // of the next destination range's folding, what is done while the sums of one leave
};

// Of all workers. `spans`: that a task takes at once (Pass::span_group). `packed`: what of the
// pass' rows they pack and unpack (Zeros::kOfPacked).
PhaseSeconds compute_seconds(const PassBuilder& builder, const PassDraft& pass, std::int64_t spans,
                             const Traffic& packed = {});

// Bytes in a second to and from the memory below: read, written, and together, where both go on.
struct TransferRates {
  double read = 0, write = 0, both = 0;
};
TransferRates storage_rates(const MachineRates& rates);
TransferRates link_rates(const MachineRates& rates);  // either direction has its own lanes
PhaseSeconds transfer_seconds(const PassDraft& pass, const Traffic& traffic,
                              const TransferRates& rates);

// By pass, of an epoch after the first.
std::vector<PhaseSeconds> transfers_of(const PlanProblem& problem, const ResidentSet& kept,
                                       const TransferRates& rates);
// With what `transfers`, those of storage, take of the workers' time; on a device they take none.
// `spans`: that a task takes at once, by pass.
std::vector<PhaseSeconds> compute_of(const PlanProblem& problem, const ResidentSet& kept,
                                     const std::vector<PhaseSeconds>& transfers,
                                     const std::vector<std::int64_t>& spans);
std::vector<std::int64_t> windows_of(const Plan& plan);  // Pass::span_group

// Of transfers between three memories, which go on at once.
PhaseSeconds slower(const PhaseSeconds& a, const PhaseSeconds& b);

// Of a pass. Slots of depth d let one share in 2 d - 1 of a phase's transfers or compute,
// whichever is less, not overlap (beside what was measured: bench/notes/planning.md). While sums
// leave, a window of the next destination range's spans is folded. `pipelined`: of so many
// destination ranges each is folded while the one before it goes through the steps.
double overlapped_seconds(const PhaseSeconds& transfers, const PhaseSeconds& compute,
                          const SlotDepth& depth, std::int64_t pipelined = 1);
// By how many destination ranges at most that is so: 1 where phases follow each other.
std::int64_t pipelined_dst_ranges(const PassDraft& pass);

}  // namespace ooc
