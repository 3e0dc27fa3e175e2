// A device that punishes what a GPU punishes. The host can't touch its memory: an address of it is
// mapped nowhere, and kernels get another one. Its queues are threads of their own, which do what
// they were asked for late, by delays that a seed draws: what nobody waited for isn't there yet.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/device/backend.h"

namespace ooc::test {

// Every piece of work comes late.
inline constexpr std::uint64_t kAlwaysLate = ~std::uint64_t{0};

// The CPU's kernels, to the bit. allocate() throws BudgetError beyond `memory_bytes` (0: no limit).
// The kernel that is launched as the `failing_launch`-th one, from 1, fails to; 0: none does.
std::unique_ptr<Backend> make_strict_device(std::uint64_t seed, std::int64_t memory_bytes,
                                            std::int64_t failing_launch = 0);

}  // namespace ooc::test
