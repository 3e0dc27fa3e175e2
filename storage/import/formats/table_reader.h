// A table of numbers, whatever file it lies in: .npy, a member of an .npz, a SciPy matrix,
// text, Matrix Market, HDF5, a headerless array. It is streamed in rows, in bounded memory, and may
// be read again from the start.
//
// Errors: DataError with the file, the row (arrays, from 0) or line (text, from 1), the value and
// what to do; IoError from the file below. Threads: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "storage/base/control.h"
#include "storage/import/decode/text_layout.h"
#include "storage/io/file.h"

namespace ooc {

enum class ElementKind { kInteger, kFloat, kBool, kString };

class TableReader {
 public:
  virtual ~TableReader() = default;
  // The path, with ":member" where there are some; for messages.
  virtual const std::string& name() const = 0;
  // Text counts its rows when first asked, which reads the file through; until then known_rows() is
  // empty. count_rows() does the same under the control of the caller.
  virtual std::int64_t rows() = 0;
  virtual std::optional<std::int64_t> known_rows() const = 0;
  virtual void count_rows(const Control&) {}
  virtual std::int64_t cols() const = 0;
  // What the elements are stored as; text is judged by its first row. Strings are no numbers: they
  // are refused when they are read (ids/ reads them).
  virtual ElementKind kind() const = 0;

  // The next rows, row-major, as many as fit `out` (a multiple of cols() elements). Returns how
  // many rows; fewer than fit only at the end. As integers, a fractional value is an error; as
  // floats, a finite value beyond fp32 is one, while NaN and infinities pass.
  virtual std::int64_t read(std::span<std::int64_t> out) = 0;
  virtual std::int64_t read(std::span<float> out) = 0;
  virtual void rewind() = 0;

  // From now on integers read NaN, in whatever it is stored, as `value` instead of refusing it.
  virtual void read_nan_as(std::int64_t) {}
  // Edges of a matrix only: the vertex count that the file itself states. A table that has one
  // holds edges and is neither features nor labels.
  virtual std::optional<std::int64_t> stated_vertices() const { return std::nullopt; }

  // Swaps rows and columns before the first read. False where the format cannot stream that way.
  virtual bool transpose() { return false; }

  // "edges.npy, row 17" or "edges.csv, line 18": where row `row` lies. Slow for text.
  virtual std::string where(std::int64_t row) = 0;
  // Whether these are all columns of the file.
  virtual bool has_all_columns() const { return true; }
  // What the header of text calls the first column; empty where there is none.
  virtual std::string_view first_name() const { return {}; }
  // That line of text, shortened; empty where rows are no text. Slow.
  virtual std::string row_text(std::int64_t) { return {}; }
};

// Opens "path", "path.npz:member", "path.h5:/dataset", "path.mtx:values", "path.csv:COLUMNS"
// (text_layout.h), or "path:float32x128" for a headerless array (raw.h). `columns` says more of
// text, but for the chosen ones. Throws DataError where the kind of file is not known.
std::unique_ptr<TableReader> open_table(FileSystem& files, const std::string& input,
                                        const TextColumns& columns = {});

// The same for edges: also the entries of a sparse matrix in an archive, and two vectors,
// "path.npz:SOURCES,DESTINATIONS".
std::unique_ptr<TableReader> open_edge_table(FileSystem& files, const std::string& input);

// The bytes of an array, "path.npy" or "path.npz:member", from NumPy's header on; null for other
// kinds of input.
std::unique_ptr<ByteSource> open_array_source(FileSystem& files, const std::string& input);

// Whether `name`, as TableReader::name() gives it, is that of a text file.
bool is_text_name(std::string_view name);

// What a table of other columns than are needed looks like: "x.csv, line 1: 5,a,1" or
// "x.npy, shape (3, 2)".
std::string first_look(TableReader& table);
// Throws DataError for a table that isn't one column; `needed` is such as "a split needs", and
// `remedy` is for what is no text.
[[noreturn]] void refuse_columns(TableReader& table, std::string_view needed,
                                 std::string_view remedy);

// Whether open_table() knows the kind of file from the input's name.
bool is_known_kind(const std::string& input);

// The kinds of file open_table() knows by their ends: ".npy", ".csv.gz" and so on.
std::span<const std::string_view> table_extensions();

}  // namespace ooc
