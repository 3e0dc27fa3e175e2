#pragma once

namespace ooc::test {

// Makes the mistake of the number, on two devices; what stands in memory then is printed, if it
// comes that far. `lazy`: the order in which threads and streams work.
void make_fault(int number, bool lazy);

}  // namespace ooc::test
