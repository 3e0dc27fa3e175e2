#include "storage/io/hdf5_file.h"

#include <fmt/format.h>

#include <utility>

#include "storage/base/errors.h"
#include "storage/io/hdf5_id.h"

namespace ooc {
namespace {

hid_t native_type(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return H5T_NATIVE_FLOAT;
    case DType::kF64:
      return H5T_NATIVE_DOUBLE;
    case DType::kI32:
      return H5T_NATIVE_INT32;
    case DType::kI64:
      return H5T_NATIVE_INT64;
    case DType::kU8:
      return H5T_NATIVE_UINT8;
    case DType::kF16:  // never written
    case DType::kBF16:
      break;
  }
  return H5I_INVALID_HID;
}

std::optional<DType> dtype_of(hid_t type) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kI32, DType::kI64, DType::kU8}) {
    if (H5Tequal(type, native_type(dtype)) > 0) return dtype;
  }
  return std::nullopt;
}

// A file kept in memory: the core driver without a backing store.
hid_t core_file_access() {
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  constexpr std::size_t kIncrement = 1 << 20;
  OOC_CHECK(H5Pset_fapl_core(access, kIncrement, 0) >= 0);
  return access;
}

// The library would copy a file's image for the property list and again for the open file. It asks
// these for memory instead and gets the image itself each time.
void read_in_place(hid_t access, std::vector<std::byte>& image) {
  using Op = H5FD_file_image_op_t;
  H5FD_file_image_callbacks_t calls{};
  calls.udata = image.data();
  calls.image_malloc = [](std::size_t, Op, void* bytes) { return bytes; };
  calls.image_memcpy = [](void* to, const void*, std::size_t, Op, void*) { return to; };
  calls.image_free = [](void*, Op, void*) -> herr_t { return 0; };
  calls.udata_copy = [](void* bytes) { return bytes; };
  calls.udata_free = [](void*) -> herr_t { return 0; };
  OOC_CHECK(H5Pset_file_image_callbacks(access, &calls) >= 0);
  OOC_CHECK(H5Pset_file_image(access, image.data(), image.size()) >= 0);
}

}  // namespace

struct Hdf5Writer::Impl {
  Hdf5Id access{core_file_access(), H5Pclose};
  Hdf5Id file{H5Fcreate("ooc", H5F_ACC_TRUNC, H5P_DEFAULT, access), H5Fclose};

  void write_attribute(const std::string& name, hid_t type, const void* value) {
    const Hdf5Id space(H5Screate(H5S_SCALAR), H5Sclose);
    const Hdf5Id attribute(H5Acreate2(file, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT),
                           H5Aclose);
    OOC_CHECK(attribute.valid() && H5Awrite(attribute, type, value) >= 0);
  }
};

Hdf5Writer::Hdf5Writer() {
  silence_hdf5();
  impl_ = std::make_unique<Impl>();
  OOC_CHECK(impl_->file.valid());
}
Hdf5Writer::~Hdf5Writer() = default;

void Hdf5Writer::write_array(const std::string& path, DType dtype,
                             const std::vector<std::int64_t>& shape, const void* data) {
  const std::vector<hsize_t> extents(shape.begin(), shape.end());
  const Hdf5Id space(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr),
                     H5Sclose);
  const Hdf5Id links(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
  OOC_CHECK(H5Pset_create_intermediate_group(links, 1) >= 0);
  const Hdf5Id set(H5Dcreate2(impl_->file, path.c_str(), native_type(dtype), space, links,
                              H5P_DEFAULT, H5P_DEFAULT),
                   H5Dclose);
  OOC_CHECK(set.valid());
  OOC_CHECK(H5Dwrite(set, native_type(dtype), H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
}

void Hdf5Writer::write_attribute(const std::string& name, std::int64_t value) {
  impl_->write_attribute(name, H5T_NATIVE_INT64, &value);
}

void Hdf5Writer::write_attribute(const std::string& name, double value) {
  impl_->write_attribute(name, H5T_NATIVE_DOUBLE, &value);
}

void Hdf5Writer::write_attribute(const std::string& name, const std::string& value) {
  const Hdf5Id type(H5Tcopy(H5T_C_S1), H5Tclose);
  OOC_CHECK(H5Tset_size(type, value.size() + 1) >= 0 && H5Tset_cset(type, H5T_CSET_UTF8) >= 0);
  impl_->write_attribute(name, type, value.c_str());
}

std::vector<std::byte> Hdf5Writer::bytes() {
  OOC_CHECK(H5Fflush(impl_->file, H5F_SCOPE_GLOBAL) >= 0);
  const ssize_t size = H5Fget_file_image(impl_->file, nullptr, 0);
  OOC_CHECK(size > 0);
  std::vector<std::byte> image(static_cast<std::size_t>(size));
  OOC_CHECK(H5Fget_file_image(impl_->file, image.data(), image.size()) == size);
  return image;
}

struct Hdf5Reader::Impl {
  Impl(std::vector<std::byte> bytes, std::string name)
      : where(std::move(name)), image(std::move(bytes)) {
    if (!image.empty()) {
      read_in_place(access, image);
      file = std::make_unique<Hdf5Id>(H5Fopen("ooc", H5F_ACC_RDONLY, access), H5Fclose);
    }
    if (image.empty() || !file->valid()) {
      throw DataError("not an HDF5 file, or a damaged one", where, "use another checkpoint");
    }
  }

  [[noreturn]] void missing(const std::string& what) const {
    throw DataError(fmt::format("{} is missing or of the wrong type", what), where,
                    "use a checkpoint that ooc-train wrote");
  }

  template <class T>
  T attribute(const std::string& name, hid_t type) const {
    T value{};
    if (H5Aexists(*file, name.c_str()) <= 0) missing("attribute " + name);
    const Hdf5Id found(H5Aopen(*file, name.c_str(), H5P_DEFAULT), H5Aclose);
    if (!found.valid() || H5Aread(found, type, &value) < 0) missing("attribute " + name);
    return value;
  }

  std::string where;
  std::vector<std::byte> image;
  Hdf5Id access{core_file_access(), H5Pclose};
  std::unique_ptr<Hdf5Id> file;
};

Hdf5Reader::Hdf5Reader(std::vector<std::byte> bytes, std::string where) {
  silence_hdf5();
  impl_ = std::make_unique<Impl>(std::move(bytes), std::move(where));
}
Hdf5Reader::~Hdf5Reader() = default;

bool Hdf5Reader::contains(const std::string& path) const {
  // Every group on the way must be there before the library may be asked for the last.
  for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    if (H5Lexists(*impl_->file, path.substr(0, slash).c_str(), H5P_DEFAULT) <= 0) return false;
    if (slash == std::string::npos) return true;
  }
}

std::vector<std::string> Hdf5Reader::list(const std::string& group) const {
  std::vector<std::string> names;
  if (!contains(group)) return names;
  const Hdf5Id id(H5Gopen2(*impl_->file, group.c_str(), H5P_DEFAULT), H5Gclose);
  if (!id.valid()) impl_->missing("group " + group);
  const auto collect = [](hid_t, const char* name, const H5L_info_t*, void* out) -> herr_t {
    static_cast<std::vector<std::string>*>(out)->emplace_back(name);
    return 0;
  };
  if (H5Literate(id, H5_INDEX_NAME, H5_ITER_INC, nullptr, collect, &names) < 0) {
    impl_->missing("group " + group);
  }
  return names;
}

Hdf5Array Hdf5Reader::read_array(const std::string& path) const {
  if (!contains(path)) impl_->missing("array " + path);
  const Hdf5Id set(H5Dopen2(*impl_->file, path.c_str(), H5P_DEFAULT), H5Dclose);
  if (!set.valid()) impl_->missing("array " + path);
  const Hdf5Id type(H5Dget_type(set), H5Tclose);
  const Hdf5Id space(H5Dget_space(set), H5Sclose);
  const std::optional<DType> dtype = dtype_of(type);
  const int rank = H5Sget_simple_extent_ndims(space);
  if (!dtype || rank < 0) impl_->missing("array " + path);
  std::vector<hsize_t> extents(static_cast<std::size_t>(rank));
  H5Sget_simple_extent_dims(space, extents.data(), nullptr);
  Hdf5Array array{*dtype, {extents.begin(), extents.end()}, {}};
  std::size_t count = 1;
  for (const hsize_t extent : extents) {
    if (extent > impl_->image.size()) impl_->missing("array " + path);  // more than there is
    count *= extent;
    if (count > impl_->image.size()) impl_->missing("array " + path);
  }
  array.data.resize(count * dtype_bytes(*dtype));
  if (count > 0 &&
      H5Dread(set, native_type(*dtype), H5S_ALL, H5S_ALL, H5P_DEFAULT, array.data.data()) < 0) {
    impl_->missing("array " + path);
  }
  return array;
}

bool Hdf5Reader::has_attribute(const std::string& attribute) const {
  return H5Aexists(*impl_->file, attribute.c_str()) > 0;
}

std::int64_t Hdf5Reader::read_int(const std::string& attribute) const {
  return impl_->attribute<std::int64_t>(attribute, H5T_NATIVE_INT64);
}

double Hdf5Reader::read_double(const std::string& attribute) const {
  return impl_->attribute<double>(attribute, H5T_NATIVE_DOUBLE);
}

std::string Hdf5Reader::read_string(const std::string& attribute) const {
  if (!has_attribute(attribute)) impl_->missing("attribute " + attribute);
  const Hdf5Id found(H5Aopen(*impl_->file, attribute.c_str(), H5P_DEFAULT), H5Aclose);
  const Hdf5Id type(H5Aget_type(found), H5Tclose);
  if (H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) != 0) {
    impl_->missing("attribute " + attribute);
  }
  std::string value(H5Tget_size(type), '\0');
  if (H5Aread(found, type, value.data()) < 0) impl_->missing("attribute " + attribute);
  value.resize(value.find('\0') == std::string::npos ? value.size() : value.find('\0'));
  return value;
}

}  // namespace ooc
