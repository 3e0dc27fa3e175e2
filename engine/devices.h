// What a run computes on.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "kernels/backend.h"

namespace ooc {

// What --devices says. auto and cpu: the CPU, whose memory is the host's. cpu:1: the CPU's kernels
// on memory of a device's own, of which there is as much as --device-memory says.
bool has_own_memory(const std::string& devices);
// What --device-memory says: a size (storage/byte_size.h) or auto, which is 0: no limit.
std::int64_t device_memory_of(const std::string& text);
std::unique_ptr<Backend> make_backend(const std::string& devices, std::int64_t memory_bytes);

}  // namespace ooc
