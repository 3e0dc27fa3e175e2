// What ooc-prep sample does: batches are sampled by the passes that training uses, and kept in a
// file.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "engine/sampling/fanouts.h"
#include "storage/base/control.h"
#include "storage/batches/batches_manifest.h"
#include "storage/dataset/dataset.h"
#include "storage/io/block_file.h"
#include "storage/io/file.h"

namespace ooc {

struct SampleOptions {
  std::string output;
  bool force = false;       // replaces batches of this name
  SamplingConfig sampling;  // its eval_fanouts aren't read
  // Whose vertices are seeds, in this order. kNone: those in no split.
  std::vector<Split> splits;
  // Of them only these vertices, ascending.
  std::optional<std::vector<std::uint32_t>> only;
  std::int64_t epochs = 1;  // samples of the training seeds, each in an order of its own
  std::int64_t seed = 0;
  std::int64_t memory_bytes = 0;  // 0: no limit
  std::string scratch;            // a directory for temporary files; empty: beside the output
  // What is free where the output goes, and temporary files: where it can't be enough, that is an
  // error before work. As many batches are prepared together as the latter have room for.
  std::int64_t disk_bytes = std::numeric_limits<std::int64_t>::max();
  std::int64_t scratch_bytes = std::numeric_limits<std::int64_t>::max();
};

// Writes the directory options.output, which appears whole or not at all, and returns its manifest.
// The batches of training seeds are those that a training of the same seed and sampling has in its
// first epochs. `io` and `files` see the same files.
// UsageError where options don't fit the dataset or each other, or the output exists; BudgetError
// before work where memory doesn't do; DataError where there are no seeds; IoError where a disk is
// full; Interrupted.
BatchesManifest sample_batches(BlockIo& io, FileSystem& files, const Dataset& dataset,
                               const SampleOptions& options, const Control& control);

}  // namespace ooc
