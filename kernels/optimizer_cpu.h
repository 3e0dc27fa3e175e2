// Optimiser steps on the CPU.
#pragma once

#include "kernels/backend.h"

namespace ooc::cpu {

void adam(const AdamStep& step);

}  // namespace ooc::cpu
