#pragma once
#include "tests/support/cuda/include/cooperative_groups.h"
