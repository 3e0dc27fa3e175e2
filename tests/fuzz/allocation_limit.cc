// No input of a few kilobytes justifies a large allocation: every `new` of this executable is
// bounded, and one beyond ends it. Not under sanitizers, which bring their own new and delete.
#ifndef OOC_SANITIZED
#include <cstdio>
#include <cstdlib>
#include <new>

namespace {

constexpr std::size_t kMostBytes = 64 << 20;

void* limited(std::size_t bytes) {
  if (bytes > kMostBytes) {
    std::fprintf(stderr, "an allocation of %zu bytes is beyond the limit of %zu\n", bytes,
                 kMostBytes);
    std::abort();
  }
  void* const memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return limited(bytes); }
void* operator new[](std::size_t bytes) { return limited(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
#endif
