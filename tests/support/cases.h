// Matrices of cases that take long.
#pragma once

#include <cstdint>

namespace ooc::test {

// In nested loops over a matrix: `if (!cases.next()) continue;` before a case. Every case runs;
// under sanitizers, where each takes ten times as long, one in `share`, spread over the matrix so
// that values of any two axes meet, the first one among them. ThreadSanitizer looks at how threads
// meet, which is the same in every case: a fourth of these.
class Cases {
 public:
  explicit Cases([[maybe_unused]] std::uint32_t share) {
#if defined(__SANITIZE_THREAD__)
    share_ = 4 * share;
#elif defined(OOC_SANITIZED)
    share_ = share;
#endif
  }
  bool runs_all() const { return share_ == 1; }
  bool next() { return (number_++ * 2654435761u >> 16) % share_ == 0; }

 private:
  std::uint32_t share_ = 1, number_ = 0;
};

}  // namespace ooc::test
