// The rows of a batch from row records, where they lie, into slices as the program reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/spec/matrix_view.h"
#include "sched/sampling/key_fields.h"
#include "sched/sampling/row_record.h"

namespace ooc {

// A batch's rows, by number: `words` have their places as third number, twice the index of a cold
// row record, or twice that of a hot one and 1.
struct RowPlaces {
  std::span<const std::uint64_t> words;
  const KeyFields& fields;
  const std::byte* hot = nullptr;
  const std::byte* cold = nullptr;
};

// Where the first `rows` rows of an input go: slices of kSliceWidth columns of the input's dtype,
// rows of TensorLayout::slice_stride() elements. 0: the input isn't wanted.
struct RowOutput {
  std::int64_t rows = 0;
  SlicedRows place = {};
};

// What so many rows of an input take, slice after slice, each padded to 64 bytes; where they lie in
// memory that begins at a multiple of 64.
std::int64_t row_output_bytes(const RowInput& input, std::int64_t rows);
RowOutput place_row_output(const RowInput& input, std::int64_t rows, std::byte* data);

// `outputs`: by input. Columns that pad a slice become zero. In parallel, by the caller's arena.
void assemble_rows(const RowRecord& record, const RowPlaces& places,
                   std::span<const RowOutput> outputs);

}  // namespace ooc
