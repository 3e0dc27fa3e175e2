// ooc-inspect --machine: what a run would compute with here.
#pragma once

#include "bin/cli/facts.h"

namespace ooc {

// Processor, its vectors, the kernels of products (chosen as a run does, and checked), memory that
// a run may take, and how large files are read. Warns in the log of kernels that are below the
// processor.
cli::Facts machine_facts();

}  // namespace ooc
