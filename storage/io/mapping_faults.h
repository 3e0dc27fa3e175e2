// What becomes of a mapped file whose pages can't be read any more: the disk fails, or somebody cut
// the file short. The kernel sends SIGBUS to the thread that touched the page, wherever that was.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace ooc {

// While it lives, a SIGBUS from `mapping` ends the process with one line on stderr that names the
// file, and exit code 1; nothing more is written, so checkpoints stay whole. Of other addresses, or
// sent by somebody, the signal ends the process as ever. At most 256 mappings are watched at once.
// Any thread.
class MappingFaults {
 public:
  MappingFaults(std::span<const std::byte> mapping, std::string path);
  ~MappingFaults();
  MappingFaults(const MappingFaults&) = delete;
  MappingFaults& operator=(const MappingFaults&) = delete;

 private:
  std::string path_;
  std::size_t slot_;
};

}  // namespace ooc
