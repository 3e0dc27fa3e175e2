// Whether a batch is one that a training can read: its numbers lie within what they index.
#pragma once

#include <string>

#include "storage/batches/batches_manifest.h"

namespace ooc {

// Empty if it is: counts up to those that the manifest says, edges in order and between its levels,
// edge types, ids, labels and splits of the seeds in their ranges; otherwise what is wrong.
// `split`: that of its seeds.
std::string check_batch(const BatchView& batch, const BatchesManifest& manifest, Split split);

}  // namespace ooc
