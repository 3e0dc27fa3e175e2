// Vectors for bytes on their way to or from files: page-aligned, so that direct I/O takes them as
// they are, and not zeroed by resize().
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace ooc {

template <class T>
struct PageAllocator {
  static constexpr std::align_val_t kAlignment{4096};
  using value_type = T;

  PageAllocator() = default;
  template <class U>
  PageAllocator(const PageAllocator<U>&) {}  // NOLINT: allocators convert

  T* allocate(std::size_t count) {
    return static_cast<T*>(::operator new(count * sizeof(T), kAlignment));
  }
  void deallocate(T* memory, std::size_t) { ::operator delete(memory, kAlignment); }
  template <class U, class... Args>
  void construct(U* at, Args&&... args) {
    if constexpr (sizeof...(Args) == 0) {
      ::new (static_cast<void*>(at)) U;
    } else {
      ::new (static_cast<void*>(at)) U(std::forward<Args>(args)...);
    }
  }
  bool operator==(const PageAllocator&) const { return true; }
};

template <class T>
using AlignedVector = std::vector<T, PageAllocator<T>>;

}  // namespace ooc
