#include "tests/support/cuda/shared_memory.h"

#include <dlfcn.h>
#include <link.h>

#include <cstring>

#include "tests/support/cuda/cuda_emulation.h"
#include "tests/support/cuda/sanitizers.h"

namespace ooc {
// At its largest.
extern constinit thread_local __align__(
    1024) unsigned char shared_bytes[cuda_emulation::kMaxShared + 64];
constinit thread_local __align__(1024) unsigned char shared_bytes[cuda_emulation::kMaxShared + 64];
}  // namespace ooc

namespace cuda_emulation {
namespace {

constexpr unsigned char kPoison = 0xff;

// Static shared memory is what the kernel's module has as thread_local variables: where the
// emulated kernels are a shared library, that is all of its TLS.
void poison_static_shared(const void* kernel) {
  struct Query {
    ElfW(Addr) address;
    void* data = nullptr;
    std::size_t bytes = 0;
  } query{reinterpret_cast<ElfW(Addr)>(kernel)};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* context) {
        auto& q = *static_cast<Query*>(context);
        bool here = false;
        std::size_t tls = 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& p = info->dlpi_phdr[i];
          const ElfW(Addr) begin = info->dlpi_addr + p.p_vaddr;
          here |= p.p_type == PT_LOAD && q.address >= begin && q.address < begin + p.p_memsz;
          if (p.p_type == PT_TLS) tls = p.p_memsz;
        }
        const bool library = info->dlpi_name != nullptr && info->dlpi_name[0] != '\0';
        if (here && library && info->dlpi_tls_data != nullptr) {
          q.data = info->dlpi_tls_data;
          q.bytes = tls;
        }
        return here ? 1 : 0;
      },
      &query);
  if (query.data != nullptr) std::memset(query.data, kPoison, query.bytes);
}

}  // namespace

void open_shared(const void* kernel, std::size_t bytes) {
  permit(ooc::shared_bytes, sizeof ooc::shared_bytes);
  std::memset(ooc::shared_bytes, kPoison, bytes);
  forbid(ooc::shared_bytes + bytes, sizeof ooc::shared_bytes - bytes);
  poison_static_shared(kernel);
}

void close_shared() { permit(ooc::shared_bytes, sizeof ooc::shared_bytes); }

}  // namespace cuda_emulation
