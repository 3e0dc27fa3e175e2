// Optimiser steps on the CPU.
#pragma once

#include "kernels/spec/optimizer.h"

namespace ooc::cpu {

void optimize(const OptimizerStep& step);

}  // namespace ooc::cpu
