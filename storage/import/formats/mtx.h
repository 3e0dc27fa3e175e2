// Matrix Market files, .mtx and .mtx.gz: https://math.nist.gov/MatrixMarket/formats.html
//   - coordinate, general or symmetric; pattern, integer or real: the entry at (i, j) is an edge
//     i -> j, ids less one; a symmetric entry off the diagonal is followed by its mirror image.
//     "x.mtx" is the table [E, 2] of them, "x.mtx:values" the column of their values, in step;
//   - array, general; integer or real: a dense matrix.
// Skew-symmetric, hermitian and complex matrices are refused.
#pragma once

#include <memory>
#include <string>

#include "storage/import/decode/byte_source.h"
#include "storage/import/formats/table_reader.h"

namespace ooc {

// `member` is what stands after the name's colon: "values", or nothing. Throws DataError for other
// members, and for a header that is none or promises what the file cannot hold.
std::unique_ptr<TableReader> open_mtx_table(std::unique_ptr<ByteSource> source,
                                            const std::string& member);

}  // namespace ooc
