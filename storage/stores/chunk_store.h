// What comes from storage chunk by chunk: a vertex tensor's I/O chunks, slice by slice
// (tensor_store.h), or a direction's edge chunks, of one slice each (edge_chunks.h). Past the page
// cache, many transfers at once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "storage/io/block_file.h"

namespace ooc {

// Many threads.
class ChunkStore {
 public:
  virtual ~ChunkStore() = default;
  // Submits; `data` as in BlockRequest.
  virtual void read(std::int64_t chunk, std::int64_t slice, std::byte* data,
                    BlockCompletion done) const = 0;
  // Whether what was read has to be gone over before it is used: a checksum to be compared, which
  // is DataError where it differs, zeros to be put back. verify_and_decode() does it. Takes time:
  // not for completions.
  virtual bool needs_decoding(std::int64_t chunk, std::int64_t slice) const = 0;
  virtual void verify_and_decode(std::int64_t chunk, std::int64_t slice, std::byte* data) const = 0;
  // Of what is mapped: it needn't stay in memory.
  virtual void release(std::int64_t /*chunk*/, std::int64_t /*slice*/) const {}
};

}  // namespace ooc
