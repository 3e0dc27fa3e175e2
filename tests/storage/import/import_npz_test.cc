#include <catch2/catch.hpp>

#include "storage/base/errors.h"
#include "storage/import/formats/npz.h"
#include "storage/import/formats/table_reader.h"
#include "tests/support/fake_file_system.h"
#include "tests/support/input_files.h"

namespace ooc {
namespace {

using Catch::Contains;
using test::error_of;
using test::MemoryFileSystem;
using test::npy;
using test::npy_file;
using test::put_file;
using test::read_all;
using Members = std::vector<std::pair<std::string, std::string>>;

Members csr(std::vector<std::int64_t> indptr, std::vector<std::int32_t> indices,
            std::vector<float> data, std::vector<std::int64_t> shape,
            const std::string& format = "csr") {
  const auto length = [](const auto& v) {
    return std::vector<std::int64_t>{static_cast<std::int64_t>(v.size())};
  };
  return {{"indices.npy", npy(length(indices), indices)},
          {"indptr.npy", npy(length(indptr), indptr)},
          {"format.npy", npy_file("|S3", {}, format)},
          {"shape.npy", npy(length(shape), shape)},
          {"data.npy", npy(length(data), data)}};
}

TEST_CASE("npz: members stream, compressed or not, in either order of elements") {
  MemoryFileSystem files;
  for (const bool compressed : {false, true}) {
    put_file(files, "g.npz",
             test::zip({{"edges.npy", npy<std::int64_t>({2, 3}, {0, 1, 2, 3, 4, 5})},
                        {"x.npy", npy<float>({3, 2}, {1, 3, 5, 2, 4, 6}, true)}},
                       compressed));
    const auto edges = open_table(files, "g.npz:edges");
    REQUIRE(edges->transpose());
    CHECK(read_all<std::int64_t>(*edges, 2) == std::vector<std::int64_t>{0, 3, 1, 4, 2, 5});
    const auto x = open_table(files, "g.npz:x");
    CHECK(read_all<float>(*x, 2) == std::vector<float>{1, 2, 3, 4, 5, 6});
    x->rewind();
    CHECK(read_all<float>(*x, 1) == std::vector<float>{1, 2, 3, 4, 5, 6});
  }
}

TEST_CASE("npz: a single member needs no name, several do") {
  MemoryFileSystem files;
  put_file(files, "one.npz", test::zip({{"a.npy", npy<float>({2}, {1, 2})}}, true));
  CHECK(read_all<float>(*open_table(files, "one.npz")) == std::vector<float>{1, 2});
  put_file(files, "two.npz",
           test::zip({{"b.npy", npy<float>({1}, {1})}, {"a.npy", npy<float>({1}, {1})}}, true));
  CHECK_THAT(error_of<DataError>([&] { open_table(files, "two.npz"); }),
             Contains("2 arrays (a, b), two.npz; name one"));
  CHECK_THAT(error_of<DataError>([&] { open_table(files, "two.npz:c"); }),
             Contains("no member 'c', two.npz"));
}

TEST_CASE("npz: a CSR matrix becomes dense rows; entries given twice add up") {
  MemoryFileSystem files;
  for (const bool compressed : {false, true}) {
    put_file(files, "x.npz",
             test::zip(csr({0, 2, 2, 5}, {1, 3, 0, 2, 0}, {1, 2, 3, 4, 5}, {3, 4}), compressed));
    for (const std::int64_t block : {1, 2, 3}) {
      const auto table = open_table(files, "x.npz");
      CHECK(table->rows() == 3);
      CHECK(table->cols() == 4);
      const std::vector<float> expected = {0, 1, 0, 2, 0, 0, 0, 0, 8, 0, 4, 0};
      CHECK(read_all<float>(*table, block) == expected);
      table->rewind();
      CHECK(read_all<float>(*table, block) == expected);
    }
  }
}

TEST_CASE("npz: a sparse matrix that does not fit together is refused") {
  MemoryFileSystem files;
  const auto message = [&](const Members& members) {
    put_file(files, "x.npz", test::zip(members, true));
    return error_of<DataError>([&] { read_all<float>(*open_table(files, "x.npz")); });
  };
  CHECK_THAT(message(csr({0, 1}, {0}, {1}, {1, 1}, "csc")),
             Contains("in csc format, x.npz") && Contains("tocsr()"));
  CHECK_THAT(message(csr({0, 1}, {0}, {1}, {2, 1})),
             Contains("indptr has 2 elements where 2 rows"));
  CHECK_THAT(message(csr({0, 1}, {0}, {1, 2}, {1, 1})),
             Contains("indices has 1 elements but data 2"));
  CHECK_THAT(message(csr({0, 1, 2}, {0, 4}, {1, 2}, {2, 4})),
             Contains("column 4 is not below the column count 4, x.npz:indices, row 1"));
  CHECK_THAT(message(csr({0, 2, 1}, {0, 1}, {1, 2}, {2, 4})), Contains("x.npz:indptr, row 2"));
  CHECK_THAT(message(csr({1, 2, 2}, {0, 1}, {1, 2}, {2, 4})), Contains("start at 0"));
  CHECK_THAT(message(csr({0, 1, 1}, {0, 1}, {1, 2}, {2, 4})), Contains("inconsistent"));
  CHECK_THAT(message(csr({0}, {}, {}, {0, 4, 4})), Contains("shape"));
  Members no_indices = csr({0, 1}, {0}, {1}, {1, 1});
  no_indices.erase(no_indices.begin());
  CHECK_THAT(message(no_indices), Contains("no member 'indices'"));
}

TEST_CASE("npz: what is not an archive, and a damaged one, are refused") {
  MemoryFileSystem files;
  put_file(files, "x.npz", "this is no archive");
  CHECK_THAT(error_of<DataError>([&] { open_table(files, "x.npz"); }),
             Contains("not a readable .npz file") && Contains("x.npz"));

  std::vector<float> values(10'000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * i % 977);
  for (const bool compressed : {false, true}) {
    std::string bytes = test::zip({{"x.npy", npy<float>({10'000}, values)}}, compressed);
    put_file(files, "cut.npz", bytes.substr(0, bytes.size() / 2));
    CHECK_THAT(error_of<DataError>([&] { open_table(files, "cut.npz"); }),
               Contains("not a readable .npz file"));
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 0x10);
    put_file(files, "x.npz", bytes);
    CHECK_THAT(error_of<DataError>([&] { read_all<float>(*open_table(files, "x.npz"), 5'000); }),
               Contains("the archive is corrupt") && Contains("x.npz:x"));
  }
}

TEST_CASE("npz: a stored member read by columns is compared with its checksum too") {
  MemoryFileSystem files;
  const std::vector<std::int64_t> ends = {0, 1, 2, 77, 4, 5};
  for (const bool fortran : {false, true}) {
    const std::vector<std::int64_t> shape =
        fortran ? std::vector<std::int64_t>{3, 2} : std::vector<std::int64_t>{2, 3};
    std::string bytes = test::zip({{"e.npy", npy<std::int64_t>(shape, ends, fortran)}}, false);
    bytes[bytes.find('\x4d', bytes.find("shape"))] = '\x4e';  // 77 becomes 78
    put_file(files, "g.npz", bytes);
    const auto table = open_table(files, "g.npz:e");
    if (!fortran) REQUIRE(table->transpose());
    CHECK_THAT(error_of<DataError>([&] { read_all<std::int64_t>(*table); }),
               Contains("the archive is corrupt") && Contains("g.npz:e"));
  }
}

TEST_CASE("npz: an error of the disk passes through the archive library") {
  MemoryFileSystem base;
  put_file(base, "x.npz", test::zip({{"x.npy", npy<float>({2}, {1, 2})}}, true));
  test::FaultyFileSystem files(base);
  files.faults.first_failing_read = 1;
  CHECK_THROWS_AS(open_table(files, "x.npz"), IoError);
}

}  // namespace
}  // namespace ooc
