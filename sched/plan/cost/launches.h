// How many kernels a device launches that takes many row groups in a call and indexes edges.
#pragma once

#include <cstdint>

#include "sched/plan/liveness/problem.h"

namespace ooc {

// Of a pass of a plan on a device with blocks of its own, as the executor hands it out and the CUDA
// backend computes it (sched/run/row_phase.cc, kernels/edges/edge_work_cuda.cu). `edges`: of all
// blocks. 0 for other devices.
std::int64_t launches_of(const PassBuilder& builder, const EdgeTable& edges, const Plan& plan,
                         const StageShape& stage, const Pass& pass, const BlockRange& own,
                         const PassMemory& memory);

}  // namespace ooc
