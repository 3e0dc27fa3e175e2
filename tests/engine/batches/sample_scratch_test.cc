// Batches that are sampled into a file, where there is little room for temporary files.
#include <algorithm>
#include <catch2/catch.hpp>

#include "engine/batches/sample_batches.h"
#include "storage/base/errors.h"
#include "tests/engine/minibatch/batch_world.h"

namespace ooc {
namespace {

using Catch::Matchers::Contains;
using test::BatchWorld;

TEST_CASE("sample_batches: batches go together as scratch has room, or it is refused at once") {
  BatchWorld world(test::batch_graph(false, 1500));
  SampleOptions options;
  options.output = "/x.batches";
  options.sampling = test::batch_config("sage", {4, 3}, 100).sampling;
  options.splits = {Split::kTrain, Split::kValid, Split::kTest};
  options.force = true;
  options.memory_bytes = 1;
  // In the least memory, of a process that grows. Returns how often was read.
  std::string checksum;
  const auto sample_in = [&](std::int64_t scratch_bytes) {
    options.scratch_bytes = scratch_bytes;
    for (;;) {
      const std::int64_t before = world.io.reads;
      try {
        checksum = sample_batches(world.io, world.files, world.dataset, options, {}).checksum;
        return world.io.reads - before;
      } catch (const BudgetError& error) {
        options.memory_bytes = error.least_bytes;
      }
    }
  };
  const std::int64_t ample_reads = sample_in(std::int64_t{1} << 40);
  const std::string expected = checksum;
  std::int64_t most_reads = 0;
  std::string refused;
  for (std::int64_t room = 8 << 20; refused.empty() && room > 1; room /= 4) {
    const std::int64_t writes = world.io.writes;
    try {
      most_reads = std::max(most_reads, sample_in(room));
      CHECK(checksum == expected);
    } catch (const IoError& error) {
      refused = error.what();
      CHECK(world.io.writes == writes);
    }
  }
  CHECK(most_reads > 2 * ample_reads);
  CHECK_THAT(refused, Contains("with one batch prepared at a time") && Contains(options.output));
}

}  // namespace
}  // namespace ooc
