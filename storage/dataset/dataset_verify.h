// What `ooc-prep verify` does: reads every byte of a dataset once and checks every checksum, every
// gap and every invariant of storage/format/README.md. Chunks are checked in parallel, through the
// mapping; what it holds in memory are degrees (12 bytes a vertex) and a bit a vertex.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "storage/base/control.h"
#include "storage/io/file.h"

namespace ooc {

struct VerifyReport {
  // Messages of DataErrors: what is wrong, the file, its chunk and offset, what to do. While bytes
  // are damaged, what they mean is not judged. Ends after kMaxFaults of them.
  std::vector<std::string> faults;
  std::vector<std::string> foreign_files;  // in the directory, but none of the dataset's
  std::int64_t vertices = 0;
  std::int64_t edges = 0;
};

inline constexpr std::size_t kMaxFaults = 100;

// DataError only where there is no dataset at all. IoError and Interrupted pass through.
VerifyReport verify_dataset(FileSystem& files, const std::string& path,
                            const Control& control = {});

}  // namespace ooc
