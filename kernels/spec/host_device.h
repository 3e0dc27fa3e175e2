// Marks the per-element maths that CPU and CUDA kernels share.
#pragma once

#ifdef __CUDACC__
#define OOC_HOST_DEVICE __host__ __device__
#else
#define OOC_HOST_DEVICE
#endif
