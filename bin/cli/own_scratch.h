// A directory for the temporary files of one output.
#pragma once

#include <memory>
#include <string>

#include "storage/io/file.h"

namespace ooc::cli {

// In a directory that others use, too. It is removed with what lies in it, and so is what a killed
// process left there. UsageError where another process makes the same output.
class OwnScratch {
 public:
  // Empty: nowhere, and nothing is made.
  OwnScratch(const std::string& directory, const std::string& output);
  ~OwnScratch();
  OwnScratch(const OwnScratch&) = delete;
  OwnScratch& operator=(const OwnScratch&) = delete;

  const std::string& path() const { return path_; }  // empty: none

 private:
  std::string path_;
  std::unique_ptr<FileLock> lock_;
};

}  // namespace ooc::cli
