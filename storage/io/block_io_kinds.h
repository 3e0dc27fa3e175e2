// The implementations behind make_block_io(); storage/io/block_file.h says what they are.
#pragma once

#include <memory>

#include "storage/io/block_file.h"

namespace ooc {

// Null where the kernel refuses io_uring; `error` then holds its errno.
std::unique_ptr<BlockIo> make_uring_block_io(const BlockIoOptions& options, int& error);
std::unique_ptr<BlockIo> make_threads_block_io(const BlockIoOptions& options);
// Temporary files are those of `temporary`. A page that the disk cannot deliver any more, after it
// was read once, ends the process (storage/io/mapping_faults.h).
std::unique_ptr<BlockIo> make_mapped_block_io(const BlockIoOptions& options,
                                              std::unique_ptr<BlockIo> temporary);

}  // namespace ooc
