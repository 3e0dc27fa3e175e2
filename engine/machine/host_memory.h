// How much memory the machine and the limits this process runs under leave it.
#pragma once

#include <cstdint>
#include <string>

namespace ooc {

// High-water mark of resident memory (VmHWM of /proc/self/status), mapped pages included, and what
// is resident now; 0 where the kernel doesn't say.
std::int64_t peak_host_bytes();
std::int64_t resident_host_bytes();
// The same in steps of 8 MiB, 24 MiB at least: it varies by a few from run to run, and what a
// budget allows should not.
std::int64_t held_host_bytes();
// The same of what it has held at most so far.
std::int64_t most_held_host_bytes();

// What this process may take in all, as --host-memory auto has it: what it has, and of what is free
// all but a sixteenth, 64 MiB at least. Free is the least of what the machine has available and
// what is left of the memory limits of its control group and all groups that one is in (versions 1
// and 2); memory that only caches files counts as free. `root`: for tests, where /proc and /sys
// lie.
std::int64_t host_memory_for_us(const std::string& root = "");
// What --host-memory says: a size (storage/base/byte_size.h) or auto.
std::int64_t host_memory_of(const std::string& text);

}  // namespace ooc
