#include <cblas.h>
#include <sys/mman.h>

#include <utility>

#include "kernels/dense/blas.h"
#include "kernels/dense/blas_core.h"
#include "storage/base/errors.h"

namespace ooc {
namespace {

// Replaces OpenBLAS's allocator of work buffers (by the linker's --wrap, see CMakeLists.txt).
//
// Its own one, in Debian 12's serial build (0.3.21), searches its table of buffers for a free entry
// without holding the lock: two threads can get the same buffer and both compute garbage. Here a
// thread keeps a buffer of its own, so gemm takes no lock at all.
//
// Of OpenBLAS's BUFFER_SIZE on x86-64, and a page. It is address space: gemm touches only its
// front, about 2 MB at our shapes.
constexpr std::size_t kBufferBytes = (std::size_t{32} << 22) + 4096;

void* map_buffer() {
  void* buffer = mmap(nullptr, kBufferBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (buffer == MAP_FAILED) {
    // A C caller lies between here and ours: an exception could not pass through it.
    check_failed("no address space for a work buffer of OpenBLAS", __FILE__, __LINE__);
  }
  return buffer;
}

// The buffer a thread is not using just now.
struct SpareBuffer {
  void* data = nullptr;
  ~SpareBuffer() {
    if (data != nullptr) munmap(data, kBufferBytes);
  }
};

thread_local SpareBuffer spare;

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

extern "C" {

void* __wrap_blas_memory_alloc(int) {
  if (spare.data == nullptr) return map_buffer();
  return std::exchange(spare.data, nullptr);
}

void __wrap_blas_memory_free(void* buffer) {
  if (spare.data == nullptr) {
    spare.data = buffer;
  } else {
    munmap(buffer, kBufferBytes);
  }
}

}  // extern "C"

void gemm(const Gemm<float>& call) { call_gemm(cblas_sgemm, call); }
void gemm(const Gemm<double>& call) { call_gemm(cblas_dgemm, call); }

void check_blas_is_serial() {
  if (openblas_get_parallel() == 0) return;
  throw DeviceError("OpenBLAS starts threads of its own", openblas_get_config(),
                    "build against the serial OpenBLAS (Debian: libopenblas-serial-dev)");
}

bool multiplies_unpacked() {
  static const bool unpacked = blas_core().uses >= VectorSet::kAvx512;
  return unpacked;
}

}  // namespace ooc
