#include "sched/sampling/key_ranges.h"

#include <catch2/catch.hpp>
#include <cstdint>

#include "tests/support/fake_file_system.h"

namespace ooc {
namespace {

TEST_CASE("as many ranges at once as have memory, which many runs make larger") {
  constexpr std::int64_t kWanted = 6;
  for (const std::uint64_t run_count : {1, 4, 5, 100}) {
    test::MemoryFileSystem files;
    SortedRuns runs(files, "/runs", 0);
    for (std::uint64_t run = 0; run < run_count; ++run) {
      runs.write(run, Records{.keys = {run, run + 100}, .data = {}});
    }
    runs.finish();
    const std::uint64_t most = 2 * kLeastOfRun;
    const std::int64_t at_once = ranges_at_once(runs, kWanted, most);
    INFO(run_count << " runs, " << at_once << " ranges");
    // Of 1 run, or 2, ranges are as large as they may be; of 4 each is twice as large.
    const std::int64_t expected = run_count == 1 ? kWanted : run_count <= 5 ? 12 / run_count : 1;
    CHECK(at_once == expected);
  }
}

}  // namespace
}  // namespace ooc
