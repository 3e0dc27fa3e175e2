#include "storage/io/io_threads.h"

#include <sys/resource.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <fstream>
#include <stdexcept>

namespace ooc {
namespace {

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define OOC_LIMITS_ADDRESS_SPACE  // sanitizers take terabytes, and die where they get no more

// Leaves the process this much more address space than it has.
class AddressSpaceLimit {
 public:
  explicit AddressSpaceLimit(std::uint64_t more_bytes) {
    std::uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    ::getrlimit(RLIMIT_AS, &before_);
    rlimit limit = before_;
    limit.rlim_cur = pages * 4096 + more_bytes;
    ::setrlimit(RLIMIT_AS, &limit);
  }
  ~AddressSpaceLimit() { ::setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_{};
};
#endif

TEST_CASE("io_threads: everything submitted is run, and get() throws what a task threw") {
  std::atomic<int> ran{0};
  std::future<void> failed;
  {
    IoThreads threads(3);
    for (int i = 0; i < 100; ++i) threads.submit([&] { ++ran; });
    failed = threads.submit([] { throw std::runtime_error("no"); });
  }
  CHECK(ran == 100);
  CHECK_THROWS_AS(failed.get(), std::runtime_error);
}

#ifdef OOC_LIMITS_ADDRESS_SPACE
TEST_CASE("io_threads: where the system gives fewer threads, those do the work") {
  std::atomic<int> ran{0};
  {
    const AddressSpaceLimit limit(std::uint64_t{64} << 20);  // a stack takes 8 MiB of it
    IoThreads threads(200);
    for (int i = 0; i < 100; ++i) threads.submit([&] { ++ran; });
  }
  CHECK(ran == 100);
}
#endif

}  // namespace
}  // namespace ooc
