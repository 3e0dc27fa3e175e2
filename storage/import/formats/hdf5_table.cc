#include "storage/import/formats/hdf5_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "storage/base/errors.h"
#include "storage/import/decode/element.h"
#include "storage/io/hdf5_id.h"

namespace ooc {
namespace {

constexpr std::int64_t kBufferBytes = 4 << 20;
constexpr std::uint64_t kCacheBytes = 64 << 20;
constexpr std::uint64_t kMaxChunkBytes = 256 << 20;
constexpr std::size_t kMostNamed = 16;
// No filter packs tighter than deflate's 1032 bytes into one, by much.
constexpr std::uint64_t kMostPacking = 1100;
constexpr std::uint64_t kUnpackedSlack = 1 << 20;

struct Element {
  char kind = 0;  // b, i, u, f
  std::size_t bytes = 0;
};

// Calls visit.template operator()<T>() with the type that elements have in memory.
template <class Visit>
void with_type(const Element& element, Visit&& visit) {
  const auto pick = [&]<class I8, class I16, class I32, class I64>() {
    if (element.bytes == 1) visit.template operator()<I8>();
    if (element.bytes == 2) visit.template operator()<I16>();
    if (element.bytes == 4) visit.template operator()<I32>();
    if (element.bytes == 8) visit.template operator()<I64>();
  };
  if (element.kind == 'f') {
    if (element.bytes == 4) visit.template operator()<float>();
    if (element.bytes == 8) visit.template operator()<double>();
  } else if (element.kind == 'i') {
    pick.template operator()<std::int8_t, std::int16_t, std::int32_t, std::int64_t>();
  } else {
    pick.template operator()<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>();
  }
}

hid_t native_type(const Element& element) {
  constexpr std::array<int, 4> kBits = {8, 16, 32, 64};
  const std::array<hid_t, 4> sign = {H5T_NATIVE_INT8, H5T_NATIVE_INT16, H5T_NATIVE_INT32,
                                     H5T_NATIVE_INT64};
  const std::array<hid_t, 4> no_sign = {H5T_NATIVE_UINT8, H5T_NATIVE_UINT16, H5T_NATIVE_UINT32,
                                        H5T_NATIVE_UINT64};
  if (element.kind == 'f') return element.bytes == 4 ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE;
  for (std::size_t i = 0; i < kBits.size(); ++i) {
    if (element.bytes * 8 == static_cast<std::size_t>(kBits[i])) {
      return element.kind == 'i' ? sign[i] : no_sign[i];
    }
  }
  return H5I_INVALID_HID;
}

bool is_whole_size(std::size_t bytes) {
  return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
}

// The paths of the datasets in a file, at most one more than are worth naming.
std::vector<std::string> dataset_paths(hid_t file) {
  std::vector<std::string> paths;
  const auto collect = [](hid_t, const char* name, const H5O_info_t* info, void* out) -> herr_t {
    auto& found = *static_cast<std::vector<std::string>*>(out);
    if (info->type == H5O_TYPE_DATASET) found.emplace_back(name);
    return found.size() > kMostNamed ? 1 : 0;
  };
  H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_INC, collect, &paths, H5O_INFO_BASIC);
  return paths;
}

Hdf5Id open_file(const std::string& path) {
  silence_hdf5();
  const Hdf5Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_file_locking(access, 0, 1);  // reading needs none, and not every file system has them
  Hdf5Id file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access), H5Fclose);
  if (!file.valid()) {
    throw DataError("not an HDF5 file, or a damaged one", path, "write or download it again");
  }
  return file;
}

class Hdf5Table final : public TableReader {
 public:
  Hdf5Table(FileSystem& files, const std::string& path, const std::string& dataset)
      : path_(path), file_bytes_(files.open(path)->size()), file_(open_file(path)) {
    set_path_ = dataset.empty() ? only_dataset() : dataset;
    set_path_.erase(0, set_path_.find_first_not_of('/'));
    name_ = fmt::format("{}:/{}", path, set_path_);
    require_dataset();
    read_type(open_set(H5P_DEFAULT));
    read_shape(open_set(H5P_DEFAULT));
    set_ = std::make_unique<Hdf5Id>(open_cached());
  }

  const std::string& name() const override { return name_; }
  std::int64_t rows() override { return rows_; }
  std::optional<std::int64_t> known_rows() const override { return rows_; }
  std::int64_t cols() const override { return cols_; }
  ElementKind kind() const override {
    if (element_.kind == 'b') return ElementKind::kBool;
    return element_.kind == 'f' ? ElementKind::kFloat : ElementKind::kInteger;
  }
  std::int64_t read(std::span<std::int64_t> out) override { return read_rows(out); }
  std::int64_t read(std::span<float> out) override { return read_rows(out); }
  void rewind() override { row_ = 0; }
  void read_nan_as(std::int64_t value) override { nan_value_ = value; }

  bool transpose() override {
    if (extents_.size() != 2) return false;
    std::swap(rows_, cols_);
    transposed_ = !transposed_;
    return true;
  }

  std::string where(std::int64_t row) override {
    return fmt::format("{}, {} {}", name_, transposed_ ? "column" : "row", row);
  }

 private:
  std::string only_dataset() const {
    const std::vector<std::string> paths = dataset_paths(file_);
    if (paths.size() == 1) return paths[0];
    throw DataError(fmt::format("the file holds {} datasets{}{}",
                                paths.size() > kMostNamed ? "many" : std::to_string(paths.size()),
                                paths.empty() ? "" : ", ", fmt::join(paths, ", ")),
                    path_, "name one, such as FILE.h5:/features");
  }

  // Every link on the way must be there before the library may be asked for the last.
  void require_dataset() const {
    bool there = !set_path_.empty();
    for (std::size_t slash = 0; there && slash != std::string::npos;) {
      slash = set_path_.find('/', slash + 1);
      there = H5Lexists(file_, set_path_.substr(0, slash).c_str(), H5P_DEFAULT) > 0;
    }
    if (there && open_set(H5P_DEFAULT).valid()) return;
    throw DataError(fmt::format("there is no dataset '/{}'", set_path_), path_,
                    fmt::format("the file has: {}", fmt::join(dataset_paths(file_), ", ")));
  }

  Hdf5Id open_set(hid_t access) const {
    return {H5Dopen2(file_, set_path_.c_str(), access), H5Dclose};
  }

  void read_type(const Hdf5Id& set) {
    const Hdf5Id type(H5Dget_type(set), H5Tclose);
    element_.bytes = H5Tget_size(type);
    stored_bytes_ = element_.bytes;
    switch (H5Tget_class(type)) {
      case H5T_INTEGER:
        element_.kind = H5Tget_sign(type) == H5T_SGN_NONE ? 'u' : 'i';
        break;
      case H5T_FLOAT:
        element_.kind = 'f';
        if (element_.bytes == 2) element_.bytes = 4;  // the library converts
        break;
      case H5T_ENUM:  // h5py's booleans
        if (element_.bytes == 1) element_.kind = 'b';
        break;
      default:
        break;
    }
    const bool known = element_.kind == 'f' ? element_.bytes == 4 || element_.bytes == 8
                                            : is_whole_size(element_.bytes);
    if (element_.kind == 0 || !known) {
      throw DataError("the elements are neither integers, floats nor booleans", name_,
                      "write them as numbers, such as float32");
    }
    memory_type_ = std::make_unique<Hdf5Id>(
        H5Tcopy(element_.kind == 'b' ? static_cast<hid_t>(type) : native_type(element_)), H5Tclose);
  }

  void read_shape(const Hdf5Id& set) {
    const Hdf5Id space(H5Dget_space(set), H5Sclose);
    const int rank = H5Sget_simple_extent_ndims(space);
    if (rank != 1 && rank != 2) {
      throw DataError(fmt::format("the dataset has {} dimensions where 1 or 2 are needed", rank),
                      name_, "write it as a vector or a matrix");
    }
    extents_.resize(static_cast<std::size_t>(rank));
    H5Sget_simple_extent_dims(space, extents_.data(), nullptr);
    std::uint64_t bytes = element_.bytes;
    bool overflow = false;
    for (const hsize_t extent : extents_) {
      overflow = overflow || extent > static_cast<hsize_t>(INT64_MAX) ||
                 __builtin_mul_overflow(bytes, extent, &bytes);
    }
    const std::uint64_t held = std::min<std::uint64_t>(H5Dget_storage_size(set), file_bytes_);
    if (overflow || bytes / kMostPacking > held + kUnpackedSlack / kMostPacking) {
      throw DataError(fmt::format("the shape promises more than the {} bytes there can hold", held),
                      fmt::format("{}, shape ({})", name_, fmt::join(extents_, ", ")),
                      "write the dataset again");
    }
    rows_ = static_cast<std::int64_t>(extents_[0]);
    cols_ = rank == 2 ? static_cast<std::int64_t>(extents_[1]) : 1;
  }

  // Opens the dataset with a cache that holds the chunks of a band of rows, so that none is
  // unpacked twice.
  Hdf5Id open_cached() const {
    const Hdf5Id plain = open_set(H5P_DEFAULT);
    const Hdf5Id created(H5Dget_create_plist(plain), H5Pclose);
    const H5D_layout_t layout = H5Pget_layout(created);
    if (layout == H5D_VIRTUAL || H5Pget_external_count(created) > 0) {
      throw DataError("the dataset's data lies in other files", name_, "copy it into one");
    }
    const Hdf5Id access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose);
    if (layout == H5D_CHUNKED) {
      std::array<hsize_t, 2> chunk = {1, 1};
      H5Pget_chunk(created, static_cast<int>(extents_.size()), chunk.data());
      std::uint64_t chunk_bytes = stored_bytes_;
      if (__builtin_mul_overflow(chunk_bytes, chunk[0], &chunk_bytes) ||
          __builtin_mul_overflow(chunk_bytes, chunk[1], &chunk_bytes) ||
          chunk_bytes > std::min(kMaxChunkBytes, kMostPacking * file_bytes_ + kUnpackedSlack)) {
        throw DataError("the dataset's chunks are too large", name_,
                        "write it again with chunks of about a megabyte");
      }
      std::uint64_t across = 1;
      for (std::size_t i = 0; i < extents_.size(); ++i) {
        const std::uint64_t along = (extents_[i] + chunk[i] - 1) / std::max<hsize_t>(1, chunk[i]);
        if (i == 1 || extents_[i] <= 2) across = std::max(across, along);
      }
      const std::uint64_t fitting = std::max<std::uint64_t>(1, kCacheBytes / chunk_bytes);
      constexpr std::size_t kSlots = 12421;
      H5Pset_chunk_cache(access, kSlots, chunk_bytes * std::min(across, fitting), 1.0);
    }
    return open_set(access);
  }

  template <class Out>
  std::int64_t read_rows(std::span<Out> out) {
    if (cols_ == 0) return 0;
    const std::int64_t wanted =
        std::min(static_cast<std::int64_t>(out.size()) / cols_, rows_ - row_);
    const std::int64_t row_bytes = cols_ * static_cast<std::int64_t>(element_.bytes);
    const std::int64_t step = std::max<std::int64_t>(1, kBufferBytes / row_bytes);
    for (std::int64_t done = 0; done < wanted;) {
      const std::int64_t count = std::min(step, wanted - done);
      fetch(count);
      convert(out.data() + done * cols_, count);
      row_ += count;
      done += count;
    }
    return wanted;
  }

  void fetch(std::int64_t count) {
    std::array<hsize_t, 2> start = {static_cast<hsize_t>(row_), 0};
    std::array<hsize_t, 2> extent = {static_cast<hsize_t>(count), static_cast<hsize_t>(cols_)};
    if (transposed_) {
      std::swap(start[0], start[1]);
      std::swap(extent[0], extent[1]);
    }
    const int rank = static_cast<int>(extents_.size());
    scratch_.resize(static_cast<std::size_t>(count * cols_) * element_.bytes);
    const Hdf5Id from(H5Dget_space(*set_), H5Sclose);
    const Hdf5Id to(H5Screate_simple(rank, extent.data(), nullptr), H5Sclose);
    H5Sselect_hyperslab(from, H5S_SELECT_SET, start.data(), nullptr, extent.data(), nullptr);
    if (H5Dread(*set_, *memory_type_, to, from, H5P_DEFAULT, scratch_.data()) < 0) {
      throw DataError("the dataset cannot be read: damaged, or packed by a filter not known here",
                      where(row_), "write it again, without filters or with gzip");
    }
  }

  template <class Out>
  void convert(Out* out, std::int64_t count) {
    with_type(element_, [&]<class In>() {
      for (std::int64_t i = 0; i < count * cols_; ++i) {
        const std::int64_t row = i / cols_, col = i % cols_;
        In value;
        const std::int64_t at = transposed_ ? col * count + row : i;
        std::memcpy(&value, scratch_.data() + static_cast<std::size_t>(at) * sizeof(In),
                    sizeof(In));
        const Conversion status = convert_element(value, out[i]);
        if (status == Conversion::kOk || replace_nan(value, out[i])) continue;
        const std::string place = cols_ > 1 && !transposed_ ? fmt::format(", column {}", col) : "";
        const bool fraction = status == Conversion::kNotInteger;
        throw DataError(
            fmt::format("{} {}", value, fraction ? "is not an integer" : "is out of range"),
            where(row_ + row) + place,
            fraction ? "whole numbers are needed here" : "correct the value");
      }
    });
  }

  template <class In, class Out>
  bool replace_nan(In value, Out& out) const {
    if constexpr (std::is_integral_v<Out>) {
      if (!nan_value_ || !is_nan(value)) return false;
      out = *nan_value_;
      return true;
    }
    return false;
  }

  std::string path_;
  std::uint64_t file_bytes_;
  Hdf5Id file_;
  std::string set_path_;
  std::string name_;
  std::unique_ptr<Hdf5Id> set_, memory_type_;
  Element element_;
  std::size_t stored_bytes_ = 0;
  std::vector<hsize_t> extents_;
  std::vector<std::byte> scratch_;
  std::int64_t rows_ = 0;
  std::int64_t cols_ = 0;
  std::int64_t row_ = 0;
  bool transposed_ = false;
  std::optional<std::int64_t> nan_value_;
};

}  // namespace

std::unique_ptr<TableReader> open_hdf5_table(FileSystem& files, const std::string& path,
                                             const std::string& dataset) {
  return std::make_unique<Hdf5Table>(files, path, dataset);
}

}  // namespace ooc
