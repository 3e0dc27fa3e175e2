// What an import did to its input, as a dataset's manifest tells it.
#pragma once

#include <string>

#include "storage/import/importer.h"

namespace ooc {

// A JSON object, the options in their words.
std::string describe_transforms(const ImportOptions& options);

}  // namespace ooc
