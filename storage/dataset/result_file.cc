#include "storage/dataset/result_file.h"

#include <fmt/format.h>
#include <hdf5.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "storage/base/errors.h"
#include "storage/io/hdf5_id.h"
#include "storage/io/npy_file.h"
#include "storage/io/text_file.h"

namespace ooc {
namespace {

bool is_csv(const std::string& path) { return path.ends_with(".csv"); }
bool is_hdf5(const std::string& path) { return path.ends_with(".h5") || path.ends_with(".hdf5"); }

std::size_t row_bytes(const ResultShape& shape) {
  return static_cast<std::size_t>(std::max<std::int64_t>(1, shape.cols)) * dtype_bytes(shape.dtype);
}

NpyShape npy_shape(const ResultShape& shape) {
  const char* descr = shape.dtype == DType::kF32  ? "<f4"
                      : shape.dtype == DType::kU8 ? "|u1"
                                                  : "<i8";
  return {descr, static_cast<std::int64_t>(dtype_bytes(shape.dtype)), shape.rows, shape.cols};
}

hid_t native_type(DType dtype) {
  if (dtype == DType::kF32) return H5T_NATIVE_FLOAT;
  return dtype == DType::kU8 ? H5T_NATIVE_UINT8 : H5T_NATIVE_INT64;
}

class NpyFile final : public ResultFile {
 public:
  NpyFile(FileSystem& files, const std::string& path, const ResultShape& shape)
      : files_(files), path_(path), shape_(shape), file_(files.create(path + ".tmp")) {}
  ~NpyFile() override {
    if (finished_) return;
    try {
      files_.remove_all(path_ + ".tmp");
    } catch (const Error&) {  // what failed first is on its way to the user already
    }
  }

  void append(const void* data, std::int64_t row_count) override {
    if (end_ == 0) {
      const std::string header = npy_header(npy_shape(shape_));
      file_->write_at(0, std::as_bytes(std::span(header)));
      end_ = header.size();
    }
    const std::size_t bytes = static_cast<std::size_t>(row_count) * row_bytes(shape_);
    file_->write_at(end_, {static_cast<const std::byte*>(data), bytes});
    end_ += bytes;
    rows_ += row_count;
  }

  void append_ids(std::span<const std::int64_t> ids) override {
    if (!ids_) {
      ids_ = std::make_unique<NpyFile>(files_, result_ids_path(path_, IdKind::kIntegers),
                                       ResultShape{DType::kI64, shape_.rows, 0});
    }
    ids_->append(ids.data(), static_cast<std::int64_t>(ids.size()));
  }

  void append_names(std::span<const std::string> names) override {
    if (!names_) {
      names_ = std::make_unique<TextFile>(files_, result_ids_path(path_, IdKind::kStrings));
    }
    for (const std::string& name : names) names_->add_line(name);
  }

  void finish() override {
    OOC_CHECK(rows_ == shape_.rows);
    if (ids_) ids_->finish();
    if (names_) names_->finish();
    file_->sync();
    file_->close();
    files_.rename(path_ + ".tmp", path_);
    files_.sync_directory(parent_path(path_));
    finished_ = true;
  }

 private:
  FileSystem& files_;
  std::string path_;
  ResultShape shape_;
  std::unique_ptr<WritableFile> file_;
  std::unique_ptr<NpyFile> ids_;
  std::unique_ptr<TextFile> names_;
  std::uint64_t end_ = 0;
  std::int64_t rows_ = 0;
  bool finished_ = false;
};

// Keeps the rows that were appended last until their ids come.
class CsvFile final : public ResultFile {
 public:
  CsvFile(FileSystem& files, const std::string& path, ResultShape shape)
      : shape_(std::move(shape)), file_(files, path) {
    file_.add("id");
    for (std::int64_t col = 0; col < std::max<std::int64_t>(1, shape_.cols); ++col) {
      file_.add(",");
      file_.add_field(head(col));
    }
    file_.add("\n");
  }

  void append(const void* data, std::int64_t row_count) override {
    const auto* const bytes = static_cast<const std::byte*>(data);
    rows_.assign(bytes, bytes + static_cast<std::size_t>(row_count) * row_bytes(shape_));
    if (shape_.ids != IdKind::kDense) return;
    for (std::int64_t i = 0; i < row_count; ++i) add_row(fmt::to_string(written_), i);
  }
  void append_ids(std::span<const std::int64_t> ids) override {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      add_row(fmt::to_string(ids[i]), static_cast<std::int64_t>(i));
    }
  }
  void append_names(std::span<const std::string> names) override {
    for (std::size_t i = 0; i < names.size(); ++i) add_row(names[i], static_cast<std::int64_t>(i));
  }
  void finish() override {
    OOC_CHECK(written_ == shape_.rows);
    file_.finish();
  }

 private:
  std::string head(std::int64_t col) const {
    if (shape_.cols == 0) return shape_.what;
    const auto index = static_cast<std::size_t>(col);
    return index < shape_.names.size() ? shape_.names[index]
                                       : fmt::format("{}_{}", shape_.what, col);
  }

  void add_row(std::string_view id, std::int64_t row) {
    file_.add_field(id);
    const std::byte* at = rows_.data() + static_cast<std::size_t>(row) * row_bytes(shape_);
    for (std::int64_t col = 0; col < std::max<std::int64_t>(1, shape_.cols); ++col) {
      file_.add(",");
      add_value(at);
      at += dtype_bytes(shape_.dtype);
    }
    file_.add("\n");
    ++written_;
  }

  void add_value(const std::byte* at) {
    if (shape_.dtype == DType::kF32) {
      float value = 0;
      std::memcpy(&value, at, sizeof(value));
      return file_.add(fmt::to_string(value));
    }
    if (shape_.dtype == DType::kU8) return file_.add(fmt::to_string(std::to_integer<int>(*at)));
    std::int64_t value = 0;
    std::memcpy(&value, at, sizeof(value));
    const auto index = static_cast<std::size_t>(value);
    if (index < shape_.names.size()) return file_.add_field(shape_.names[index]);
    file_.add(fmt::to_string(value));
  }

  ResultShape shape_;
  TextFile file_;
  std::vector<std::byte> rows_;
  std::int64_t written_ = 0;
};

// The library writes large arrays itself, to a real path; only the rename goes through the seam.
class Hdf5ResultFile final : public ResultFile {
 public:
  Hdf5ResultFile(FileSystem& files, const std::string& path, const ResultShape& shape)
      : files_(files), path_(path), shape_(shape) {
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    const Hdf5Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
    // Names fill the library's cache up to its limit, which is 32 MiB unless it is told another.
    H5AC_cache_config_t cache{};
    cache.version = H5AC__CURR_CACHE_CONFIG_VERSION;
    check(H5Pget_mdc_config(access, &cache));
    cache.set_initial_size = true;
    cache.initial_size = cache.min_size = 1 << 20;
    cache.max_size = 2 << 20;
    check(H5Pset_mdc_config(access, &cache));
    file_ = check(H5Fcreate((path + ".tmp").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access));
    create(data_, "/data", native_type(shape.dtype), shape.cols);
  }
  ~Hdf5ResultFile() override {
    close();
    if (finished_) return;
    try {
      files_.remove_all(path_ + ".tmp");
    } catch (const Error&) {  // what failed first is on its way to the user already
    }
  }

  void append(const void* data, std::int64_t row_count) override { append(data_, data, row_count); }

  void append_ids(std::span<const std::int64_t> ids) override {
    if (ids_.set < 0) create(ids_, "/ids", H5T_NATIVE_INT64, 0);
    append(ids_, ids.data(), static_cast<std::int64_t>(ids.size()));
  }

  void append_names(std::span<const std::string> names) override {
    if (ids_.set < 0) {
      string_type_ = check(H5Tcopy(H5T_C_S1));
      check(H5Tset_size(string_type_, H5T_VARIABLE));
      check(H5Tset_cset(string_type_, H5T_CSET_UTF8));
      create(ids_, "/ids", string_type_, 0);
    }
    std::vector<const char*> texts;
    for (const std::string& name : names) texts.push_back(name.c_str());
    append(ids_, texts.data(), static_cast<std::int64_t>(texts.size()));
  }

  void finish() override {
    OOC_CHECK(data_.rows == shape_.rows && (ids_.set < 0 || ids_.rows == shape_.rows));
    check(H5Fflush(file_, H5F_SCOPE_GLOBAL));
    check(close());
    const auto file = files_.update(path_ + ".tmp");
    file->sync();
    file->close();
    files_.rename(path_ + ".tmp", path_);
    files_.sync_directory(parent_path(path_));
    finished_ = true;
  }

 private:
  struct Array {
    hid_t type = -1, space = -1, set = -1;
    std::int64_t cols = 0;  // 0: one dimension
    std::int64_t rows = 0;  // written
    int rank() const { return cols == 0 ? 1 : 2; }
  };

  void create(Array& array, const char* name, hid_t type, std::int64_t cols) {
    array.type = type;
    array.cols = cols;
    const hsize_t extents[2] = {static_cast<hsize_t>(shape_.rows), static_cast<hsize_t>(cols)};
    array.space = check(H5Screate_simple(array.rank(), extents, nullptr));
    array.set =
        check(H5Dcreate2(file_, name, type, array.space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  }

  void append(Array& array, const void* data, std::int64_t row_count) {
    const hsize_t begin[2] = {static_cast<hsize_t>(array.rows), 0};
    const hsize_t count[2] = {static_cast<hsize_t>(row_count), static_cast<hsize_t>(array.cols)};
    check(H5Sselect_hyperslab(array.space, H5S_SELECT_SET, begin, nullptr, count, nullptr));
    const hid_t memory = check(H5Screate_simple(array.rank(), count, nullptr));
    const herr_t written = H5Dwrite(array.set, array.type, memory, array.space, H5P_DEFAULT, data);
    H5Sclose(memory);
    check(written);
    array.rows += row_count;
  }

  template <class T>
  T check(T result) const {
    if (result < 0) {
      if (errno == 0) errno = EIO;
      throw_file_error(errno, "cannot write result", path_ + ".tmp");
    }
    return result;
  }

  herr_t close() {
    herr_t worst = 0;
    for (Array* const array : {&data_, &ids_}) {
      if (array->set >= 0) worst = std::min(worst, H5Dclose(std::exchange(array->set, -1)));
      if (array->space >= 0) worst = std::min(worst, H5Sclose(std::exchange(array->space, -1)));
    }
    if (string_type_ >= 0) worst = std::min(worst, H5Tclose(std::exchange(string_type_, -1)));
    if (file_ >= 0) worst = std::min(worst, H5Fclose(std::exchange(file_, -1)));
    return worst;
  }

  FileSystem& files_;
  std::string path_;
  ResultShape shape_;
  hid_t file_ = -1, string_type_ = -1;
  Array data_, ids_;
  bool finished_ = false;
};

}  // namespace

std::string result_ids_path(const std::string& path, IdKind ids) {
  if (is_hdf5(path) || is_csv(path) || ids == IdKind::kDense) return "";
  return path.substr(0, path.rfind('.')) + (ids == IdKind::kStrings ? ".ids.txt" : ".ids.npy");
}

void check_result_path(FileSystem& files, const std::string& path) {
  if (!path.ends_with(".npy") && !is_hdf5(path) && !is_csv(path)) {
    throw UsageError("output of an unknown kind", path, "let its name end in .npy, .h5 or .csv");
  }
  if (!files.is_directory(parent_path(path))) {
    throw UsageError("the output's directory does not exist", path, "create it first");
  }
}

void check_result_is_free(FileSystem& files, const std::string& path, IdKind ids, bool force) {
  for (const std::string& file : {path, result_ids_path(path, ids)}) {
    if (file.empty() || !files.exists(file) || (force && !files.is_directory(file))) continue;
    throw UsageError("output exists", file, "use --force to replace it");
  }
}

std::unique_ptr<ResultFile> make_result_file(FileSystem& files, const std::string& path,
                                             const ResultShape& shape) {
  if (is_hdf5(path)) return std::make_unique<Hdf5ResultFile>(files, path, shape);
  if (is_csv(path)) return std::make_unique<CsvFile>(files, path, shape);
  return std::make_unique<NpyFile>(files, path, shape);
}

}  // namespace ooc
