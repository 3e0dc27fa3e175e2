// A dataset of an HDF5 file as a table, read by the HDF5 library in slabs of rows: integers, floats
// of 2, 4 and 8 bytes and h5py's booleans, in one or two dimensions, contiguous or in chunks.
//
// The library opens the file by its path, beside the file seam. It trusts what it reads more than
// ooc's own readers do: take .h5 files from where you would take a program.
#pragma once

#include <memory>
#include <string>

#include "storage/import/formats/table_reader.h"
#include "storage/io/file.h"

namespace ooc {

// `dataset` is a path inside the file, with or without the first slash; empty where the file holds
// only one. Throws DataError where there is none, or several to choose from, for element types and
// shapes that cannot be read, chunks beyond 256 MiB, data in other files, and a shape that promises
// more than the file's bytes can hold. Memory: a buffer of 4 MiB, and the chunks of a band of rows
// up to 64 MiB, or one where that is larger.
std::unique_ptr<TableReader> open_hdf5_table(FileSystem& files, const std::string& path,
                                             const std::string& dataset);

}  // namespace ooc
