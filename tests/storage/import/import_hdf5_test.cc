// HDF5 files as h5py writes them, and Matrix Market files as SciPy does. Skips visibly where
// python3 lacks them.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "storage/base/errors.h"
#include "storage/import/values/labels_input.h"
#include "tests/support/edge_files.h"
#include "tests/support/fake_file_system.h"
#include "tests/support/input_files.h"

namespace ooc {
namespace {

using Catch::Contains;
using test::error_of;

// Every matrix holds a[r, c] = 3 * r + c for 5 x 3.
constexpr const char* kScript = R"(
import sys, numpy as np, h5py, scipy.io, scipy.sparse as sp
d = sys.argv[1] + '/'
a = np.arange(15).reshape(5, 3)
with h5py.File(d + 'types.h5', 'w') as f:
    for t in ['i1', 'i2', 'i4', 'i8', 'u1', 'u2', 'u4', 'u8', 'f2', 'f4', 'f8', '>i4', '>f8']:
        f[t] = a.astype(t)
    f.create_dataset('packed/chunked', data=a, chunks=(2, 2), compression='gzip', shuffle=True)
    f.create_dataset('packed/growing', data=a.astype('f4'), maxshape=(None, 3))
    f['mask'] = np.array([True, False, True, True, False])
    f['nan'] = np.array([1, np.nan, 3])
    f['text'] = 'words'
    f['cube'] = np.zeros((2, 2, 2))
    f['huge'] = 0
    f.create_dataset('promise', shape=(1 << 40, 3), dtype='f4', chunks=(1024, 3))
    f['edge_index'] = np.array([[0, 1, 2], [3, 4, 5]])
    f['big'] = np.array([1 << 63], 'u8')
with h5py.File(d + 'one.hdf5', 'w') as f:
    f['group/only'] = a
rows = np.arange(200000)
with h5py.File(d + 'long.h5', 'w') as f:
    f.create_dataset('x', data=np.stack([rows, 2 * rows], 1), compression='gzip')
scipy.io.mmwrite(d + 'dense.mtx', a)
scipy.io.mmwrite(d + 'dense_real.mtx', a.astype('f8'))
scipy.io.mmwrite(d + 'graph.mtx', sp.coo_matrix(([7, 8, 9], ([0, 1, 2], [1, 0, 2])), (3, 3)),
                 symmetry='general')
scipy.io.mmwrite(d + 'symmetric.mtx', sp.coo_matrix(([.5, .5, 2], ([0, 1, 2], [1, 0, 2])), (3, 3)))
)";

class Written {
 public:
  Written() {
    test::put_file(posix_file_system(), directory_ / "make.py", kScript);
    const std::string command =
        "/usr/bin/python3 " + (directory_ / "make.py") + " " + directory_.path() + " 2>/dev/null";
    there_ = std::system(command.c_str()) == 0;
    if (!there_) WARN("skipped: python3 with numpy, scipy and h5py is needed");
  }
  bool there() const { return there_; }
  std::unique_ptr<TableReader> open(const std::string& input) const {
    return open_table(posix_file_system(), directory_ / input);
  }
  std::string error(const std::string& input) const {
    return error_of<DataError>([&] {
      const auto table = open(input);
      test::read_all<float>(*table);
    });
  }

 private:
  test::TemporaryDirectory directory_;
  bool there_ = false;
};

TEST_CASE("hdf5: h5py's datasets read as they were, whatever their type and storage") {
  const Written written;
  if (!written.there()) return;
  std::vector<float> expected(15);
  for (std::size_t i = 0; i < 15; ++i) expected[i] = static_cast<float>(i);
  std::vector<std::string> inputs = {"types.h5:/packed/chunked",
                                     "types.h5:packed/growing",
                                     "one.hdf5",
                                     "one.hdf5:/group/only",
                                     "dense.mtx",
                                     "dense_real.mtx"};
  for (const char* type :
       {"i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", ">i4", ">f8"}) {
    inputs.push_back(std::string("types.h5:/") + type);
  }
  for (const std::string& input : inputs) {
    INFO(input);
    const auto table = written.open(input);
    CHECK(table->rows() == 5);
    CHECK(test::read_all<float>(*table, 2) == expected);
    table->rewind();
    CHECK(test::read_all<std::int64_t>(*table, 7).at(14) == 14);
  }
  const auto mask = written.open("types.h5:/mask");
  CHECK(mask->kind() == ElementKind::kBool);
  CHECK(test::read_all<std::int64_t>(*mask) == std::vector<std::int64_t>{1, 0, 1, 1, 0});
  CHECK(read_labels(*written.open("types.h5:/nan"), Control{}) ==
        std::vector<std::int32_t>{1, -1, 3});
  CHECK(test::read_edges(written.open("types.h5:/edge_index"), 6) ==
        std::vector<Edge>{{0, 3}, {1, 4}, {2, 5}});
}

TEST_CASE("hdf5: a dataset longer than the buffer streams in slabs") {
  const Written written;
  if (!written.there()) return;
  const auto values = test::read_all<std::int64_t>(*written.open("long.h5"), 150'001);
  REQUIRE(values.size() == 400'000);
  bool right = true;
  for (std::int64_t i = 0; i < 200'000; ++i) {
    right = right && values[2 * i] == i && values[2 * i + 1] == 2 * i;
  }
  CHECK(right);
}

TEST_CASE("hdf5: what cannot be read is refused") {
  const Written written;
  if (!written.there()) return;
  CHECK_THAT(written.error("types.h5"), Contains("the file holds many datasets, ") &&
                                            Contains("name one, such as FILE.h5:/features"));
  CHECK_THAT(written.error("types.h5:/no/such"), Contains("there is no dataset '/no/such'"));
  CHECK_THAT(written.error("types.h5:/packed"), Contains("there is no dataset '/packed'"));
  CHECK_THAT(written.error("types.h5:/text"), Contains("neither integers, floats nor booleans"));
  CHECK_THAT(written.error("types.h5:/cube"), Contains("3 dimensions where 1 or 2 are needed"));
  CHECK_THAT(written.error("types.h5:/huge"), Contains("0 dimensions"));
  CHECK_THAT(written.error("types.h5:/promise"),
             Contains("the shape promises more than the 0 bytes there can hold") &&
                 Contains("shape (1099511627776, 3)"));
  CHECK_THAT(written.error("make.py.h5"), Contains("make.py.h5"));
  CHECK_THAT(
      error_of<DataError>([&] { test::read_all<std::int64_t>(*written.open("types.h5:/big")); }),
      Contains("9223372036854775808 is out of range") && Contains("types.h5:/big, row 0;"));
  CHECK_THAT(
      error_of<DataError>([&] { test::read_all<std::int64_t>(*written.open("types.h5:/nan")); }),
      Contains("nan is not an integer") && Contains("row 1;"));
}

TEST_CASE("mtx: SciPy's matrices give their edges and values") {
  const Written written;
  if (!written.there()) return;
  using Integers = std::vector<std::int64_t>;
  CHECK(test::read_all<std::int64_t>(*written.open("graph.mtx")) == Integers{0, 1, 1, 0, 2, 2});
  CHECK(test::read_all<std::int64_t>(*written.open("graph.mtx:values")) == Integers{7, 8, 9});
  CHECK(test::read_all<std::int64_t>(*written.open("symmetric.mtx")) == Integers{1, 0, 0, 1, 2, 2});
  CHECK(test::read_all<float>(*written.open("symmetric.mtx:values")) ==
        std::vector<float>{0.5f, 0.5f, 2});
}

}  // namespace
}  // namespace ooc
