// Programs are compiled for AVX2 (OOC_MARCH) and would die of an illegal instruction without a word
// on a processor that has none.
#pragma once

namespace ooc::cli {

// Ends the process with exit code 1 and a line on stderr where the processor lacks what x86-64-v3
// has. Runs before constructors, so nothing of the C++ library is there yet.
void check_required_vectors(int argc, char** argv, char** environment);

}  // namespace ooc::cli
