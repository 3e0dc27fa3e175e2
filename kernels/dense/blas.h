// C = A B or C += A B on row-major matrices, by the serial OpenBLAS on the calling thread.
//
// Many threads may call at once: each has a work buffer of its own (blas_cpu.cc). The same shapes
// give the same bits, whatever runs beside.
#pragma once

#include <cstdint>

namespace ooc {

enum class Transpose : bool { kNo, kYes };

// op(A) is m x k, op(B) is k x n; lda, ldb, ldc: elements between two rows as they lie in memory.
template <class T>
struct Gemm {
  Transpose transpose_a = Transpose::kNo;
  Transpose transpose_b = Transpose::kNo;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  const T* a = nullptr;
  std::int64_t lda = 0;
  const T* b = nullptr;
  std::int64_t ldb = 0;
  T* c = nullptr;
  std::int64_t ldc = 0;
  bool accumulate = false;  // otherwise C is overwritten, never read
};

void gemm(const Gemm<float>& call);
void gemm(const Gemm<double>& call);

// DeviceError if the OpenBLAS linked would start threads of its own.
void check_blas_is_serial();

// Whether OpenBLAS's kernels (blas_core.h) take a product of fewer than 10^6 multiply-adds whose
// second operand is not transposed as it lies, without packing the operands. Then small products
// are the faster ones.
bool multiplies_unpacked();

}  // namespace ooc
