// NumPy's .npz (a zip archive of .npy members), read through libzip: members as byte streams, and
// SciPy's sparse matrices (scipy.sparse.save_npz, CSR) as tables of dense rows.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "storage/import/decode/byte_source.h"
#include "storage/import/formats/table_reader.h"
#include "storage/io/file.h"

namespace ooc {

// Member names without ".npy". Throws DataError where the file is not a zip archive.
std::vector<std::string> npz_members(FileSystem& files, const std::string& path);

// One member's bytes, inflated. An uncompressed member is seekable. Throws DataError where there is
// no such member, and where the data does not match its checksum: from the read() that ends it if
// all was read in order, else from compare_checksum().
std::unique_ptr<ByteSource> open_npz_member(FileSystem& files, const std::string& path,
                                            const std::string& member);

// A SciPy CSR matrix, streamed into dense rows; entries given twice add up, as SciPy reads them.
// With a `prefix`, its arrays lie among others: "attr_data", "attr_indices" and so on. Throws
// DataError for other sparse formats and for arrays that do not fit together.
std::unique_ptr<TableReader> open_sparse_table(FileSystem& files, const std::string& path,
                                               const std::string& prefix = {});

// The entries of a square CSR, CSC or COO matrix, (i, j) an edge i -> j, in the order of its data.
std::unique_ptr<TableReader> open_sparse_edges(FileSystem& files, const std::string& path,
                                               const std::string& prefix = {});

// Edges of two vectors.
std::unique_ptr<TableReader> open_pairs(FileSystem& files, const std::string& path,
                                        const std::string& sources,
                                        const std::string& destinations);

}  // namespace ooc
