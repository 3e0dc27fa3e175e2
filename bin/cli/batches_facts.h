// What sampled batches hold, for ooc-prep sample and ooc-inspect.
#pragma once

#include <string>

#include "bin/cli/facts.h"
#include "storage/batches/batches_manifest.h"

namespace ooc::cli {

Facts batches_facts(const std::string& path, const BatchesManifest& manifest);

}  // namespace ooc::cli
