// Files written by NumPy and SciPy themselves. Skips visibly where python3 lacks them.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "storage/import/formats/table_reader.h"
#include "tests/support/fake_file_system.h"
#include "tests/support/input_files.h"

namespace ooc {
namespace {

// Every array holds a[r, c] = 3 * r + c for 5 x 3, or 0..6 in one dimension.
constexpr const char* kScript = R"(
import sys, numpy as np, scipy.sparse as sp
d = sys.argv[1] + '/'
a = np.arange(15).reshape(5, 3)
for t in ['i1', 'i2', 'i4', 'i8', 'u1', 'u2', 'u4', 'u8', 'f2', 'f4', 'f8']:
    np.save(d + 'c_' + t + '.npy', a.astype(t))
    np.save(d + 'f_' + t + '.npy', np.asfortranarray(a.astype(t)))
np.save(d + 'strided.npy', np.arange(60).reshape(10, 6)[::2, ::2] // 12 * 3 + np.arange(3))
np.savez(d + 'stored.npz', x=a, y=np.asfortranarray(a))
np.savez_compressed(d + 'small.npz', x=a, y=np.asfortranarray(a))
sp.save_npz(d + 'csr.npz', sp.csr_matrix(a))
sp.save_npz(d + 'csr_stored.npz', sp.csr_matrix(a.astype('f4')), compressed=False)
np.savetxt(d + 'blank.txt', a)
np.savetxt(d + 'head.csv', a, delimiter=',', header='a,b,c', fmt='%d')
np.savetxt(d + 'zipped.csv.gz', a, delimiter=',')
)";

TEST_CASE("table: arrays that NumPy and SciPy wrote read as they were") {
  const test::TemporaryDirectory directory;
  test::put_file(posix_file_system(), directory / "make.py", kScript);
  const std::string command =
      "/usr/bin/python3 " + (directory / "make.py") + " " + directory.path() + " 2>/dev/null";
  if (std::system(command.c_str()) != 0) {
    WARN("skipped: python3 with numpy and scipy is needed");
    return;
  }
  std::vector<float> expected(15);
  for (std::size_t i = 0; i < 15; ++i) expected[i] = static_cast<float>(i);
  std::vector<std::string> inputs = {"strided.npy", "stored.npz:x", "stored.npz:y",   "small.npz:x",
                                     "small.npz:y", "csr.npz",      "csr_stored.npz", "blank.txt",
                                     "head.csv",    "zipped.csv.gz"};
  for (const char* type : {"i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"}) {
    inputs.push_back(std::string("c_") + type + ".npy");
    inputs.push_back(std::string("f_") + type + ".npy");
  }
  for (const std::string& input : inputs) {
    INFO(input);
    const auto table = open_table(posix_file_system(), directory / input);
    CHECK(table->rows() == 5);
    CHECK(test::read_all<float>(*table, 2) == expected);
  }
}

}  // namespace
}  // namespace ooc
