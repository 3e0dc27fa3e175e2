// Owns an id of the HDF5 library. For sources only: it brings the library's own header.
#pragma once

#include <hdf5.h>

#include <utility>

namespace ooc {

class Hdf5Id {
 public:
  Hdf5Id(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  ~Hdf5Id() {
    if (id_ >= 0) close_(id_);
  }
  Hdf5Id(Hdf5Id&& other) noexcept
      : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
  Hdf5Id& operator=(Hdf5Id&&) = delete;
  operator hid_t() const { return id_; }
  bool valid() const { return id_ >= 0; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

// Turns the library's own printing of errors off: errors are ours to tell.
inline void silence_hdf5() {
  static const herr_t once = H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  static_cast<void>(once);
}

}  // namespace ooc
