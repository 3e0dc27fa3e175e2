#include <cblas.h>

#include <cstdlib>

#include "kernels/blas.h"
#include "storage/errors.h"

namespace ooc {
namespace {

#if defined(__x86_64__)
// OpenBLAS 0.3.21 does not know processors newer than itself and gives them its AVX2 kernels, half
// as fast as its AVX-512 ones. It chooses in a constructor of default priority, from this variable
// if it is set; the user's own setting stays.
__attribute__((constructor(101))) void prefer_avx512_kernels() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    setenv("OPENBLAS_CORETYPE", "SkylakeX", /*overwrite=*/0);
  }
}
#endif

CBLAS_TRANSPOSE cblas_transpose(Transpose transpose) {
  return transpose == Transpose::kYes ? CblasTrans : CblasNoTrans;
}

blasint to_int(std::int64_t value) {
  const auto narrow = static_cast<blasint>(value);
  OOC_CHECK(narrow == value);
  return narrow;
}

template <class T, class Function>
void call_gemm(Function function, const Gemm<T>& call) {
  if (call.m == 0 || call.n == 0) return;
  function(CblasRowMajor, cblas_transpose(call.transpose_a), cblas_transpose(call.transpose_b),
           to_int(call.m), to_int(call.n), to_int(call.k), T{1}, call.a, to_int(call.lda), call.b,
           to_int(call.ldb), call.accumulate ? T{1} : T{0}, call.c, to_int(call.ldc));
}

}  // namespace

void gemm(const Gemm<float>& call) { call_gemm(cblas_sgemm, call); }
void gemm(const Gemm<double>& call) { call_gemm(cblas_dgemm, call); }

void check_blas_is_serial() {
  if (openblas_get_parallel() == 0) return;
  throw DeviceError("OpenBLAS starts threads of its own", openblas_get_config(),
                    "build against the serial OpenBLAS (Debian: libopenblas-serial-dev)");
}

std::string_view blas_core() { return openblas_get_corename(); }

}  // namespace ooc
