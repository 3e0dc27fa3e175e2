// The implementations behind make_block_io(); storage/block_file.h says what they are.
#pragma once

#include <memory>

#include "storage/block_file.h"

namespace ooc {

// Null where the kernel refuses io_uring; `error` then holds its errno.
std::unique_ptr<BlockIo> make_uring_block_io(const BlockIoOptions& options, int& error);
std::unique_ptr<BlockIo> make_threads_block_io(const BlockIoOptions& options);
// Reading a page that the disk cannot deliver kills the process (SIGBUS), as with every mapping.
std::unique_ptr<BlockIo> make_mapped_block_io(const BlockIoOptions& options);

}  // namespace ooc
