// Optimiser steps on the CPU.
#pragma once

#include "kernels/optimizer.h"

namespace ooc::cpu {

void optimize(const OptimizerStep& step);

}  // namespace ooc::cpu
