// Ids in arrays of strings.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "storage/base/errors.h"
#include "storage/import/ids/id_array.h"
#include "tests/support/fake_file_system.h"
#include "tests/support/input_files.h"

namespace ooc {
namespace {

using Catch::Contains;
using test::error_of;
using test::MemoryFileSystem;
using test::put_file;

TEST_CASE("id_array: code points of all lengths in either byte order; numbers are refused") {
  MemoryFileSystem files;
  const std::u32string text = U"a\u00e4\u20ac\U0001f600";
  for (const bool big : {false, true}) {
    std::string payload;
    for (const char32_t code : text) {
      for (int byte = 0; byte < 4; ++byte) {
        payload += static_cast<char>(code >> (big ? 24 - 8 * byte : 8 * byte) & 0xff);
      }
    }
    put_file(files, "n.npy", test::npy_file(big ? ">U4" : "<U4", {1}, payload));
    StringIds ids(1 << 24);
    std::vector<std::int64_t> numbers(1);
    const auto table = open_id_array(open_byte_source(files, "n.npy"), {}, ids);
    CHECK(table->read(std::span(numbers)) == 1);
    ids.finish();
    CHECK(ids[0] == "a\u00e4\u20ac\U0001f600");
  }
  put_file(files, "n.npy", test::npy<float>({2}, {1, 2}));
  StringIds ids(1 << 24);
  CHECK_THAT(error_of<DataError>([&] { open_id_array(open_byte_source(files, "n.npy"), {}, ids); }),
             Contains("strings are needed, not the type '<f4', n.npy, shape (2);"));
}

}  // namespace
}  // namespace ooc
