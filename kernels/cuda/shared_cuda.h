// The dynamic shared memory of a launch (LaunchShape::shared_bytes), by its one name.
#pragma once

#include <cuda_runtime.h>

namespace ooc {

extern __shared__ __align__(16) unsigned char shared_bytes[];

}  // namespace ooc
