// What `ooc-prep verify` does with batches: reads every byte once, in parallel, and checks every
// checksum, every gap, and that each batch is one that a training can read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "storage/base/control.h"
#include "storage/io/file.h"

namespace ooc {

struct BatchesVerifyReport {
  std::vector<std::string> faults;         // as VerifyReport's (storage/dataset/dataset_verify.h)
  std::vector<std::string> foreign_files;  // in the directory, but none of the batches'
  std::int64_t batches = 0, vertices = 0, edges = 0;
};

// IoError and Interrupted pass through.
BatchesVerifyReport verify_batches(FileSystem& files, const std::string& path,
                                   const Control& control = {});

}  // namespace ooc
