#include <catch2/catch.hpp>
#include <numeric>

#include "storage/base/errors.h"
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

template <class T>
void check_type(const char* descr) {
  MemoryFileSystem files;
  const std::vector<T> values = {0, 1, 2, 100, 5, 7};
  std::string payload(values.size() * sizeof(T), '\0');
  std::memcpy(payload.data(), values.data(), payload.size());
  put_file(files, "a.npy", npy_file(descr, {3, 2}, payload));
  const auto table = open_table(files, "a.npy");
  CHECK(table->rows() == 3);
  CHECK(table->cols() == 2);
  CHECK(read_all<std::int64_t>(*table) == std::vector<std::int64_t>{0, 1, 2, 100, 5, 7});
  table->rewind();
  CHECK(read_all<float>(*table, 1) == std::vector<float>{0, 1, 2, 100, 5, 7});
}

TEST_CASE("npy: every element type reads as integers and as floats") {
  check_type<std::int8_t>("|i1");
  check_type<std::uint8_t>("|u1");
  check_type<std::int16_t>("<i2");
  check_type<std::uint16_t>("<u2");
  check_type<std::int32_t>("<i4");
  check_type<std::uint32_t>("<u4");
  check_type<std::int64_t>("<i8");
  check_type<std::uint64_t>("<u8");
  check_type<float>("<f4");
  check_type<double>("<f8");
}

TEST_CASE("npy: strings and sizes that numbers do not have are refused, however long") {
  MemoryFileSystem files;
  const auto refused = [](const char* descr) {
    return Contains(std::string("the array's type '") + descr + "' is not supported, a.npy");
  };
  for (const char* descr : {"|b8", "<i3", "<f16", "<i264"}) {
    put_file(files, "a.npy", npy_file(descr, {0, 2}, ""));
    CHECK_THAT(error_of<DataError>([&] { open_table(files, "a.npy"); }), refused(descr));
  }
  for (const char* descr : {"<U82", ">U3", "|S248", "|S8"}) {
    put_file(files, "a.npy", npy_file(descr, {0, 2}, ""));
    const auto table = open_table(files, "a.npy");
    CHECK(table->kind() == ElementKind::kString);
    std::vector<float> row(2);
    CHECK_THAT(error_of<DataError>([&] { table->read(std::span<float>(row)); }), refused(descr));
  }
}

TEST_CASE("npy: half precision, its subnormals and infinities") {
  MemoryFileSystem files;
  const std::vector<std::uint16_t> bits = {0x3c00, 0xc000, 0x0001, 0x7c00, 0x3555, 0x8000};
  std::string payload(12, '\0');
  std::memcpy(payload.data(), bits.data(), 12);
  put_file(files, "a.npy", npy_file("<f2", {6}, payload));
  const auto values = read_all<float>(*open_table(files, "a.npy"));
  CHECK(values[0] == 1.0f);
  CHECK(values[1] == -2.0f);
  CHECK(values[2] == 0x1p-24f);
  CHECK(std::isinf(values[3]));
  CHECK(values[4] == 0.333251953125f);
  CHECK((values[5] == 0.0f && std::signbit(values[5])));
}

TEST_CASE("npy: booleans, one dimension, header versions 2 and 3") {
  MemoryFileSystem files;
  for (const int version : {1, 2, 3}) {
    put_file(files, "m.npy", npy_file("|b1", {4}, std::string("\1\0\0\1", 4), false, version));
    const auto table = open_table(files, "m.npy");
    CHECK(table->kind() == ElementKind::kBool);
    CHECK(table->cols() == 1);
    CHECK(read_all<std::int64_t>(*table) == std::vector<std::int64_t>{1, 0, 0, 1});
  }
}

TEST_CASE("npy: Fortran order and transposing give the same rows, in blocks of any size") {
  MemoryFileSystem files;
  // The matrix r * 10 + c, 5 x 3, in both orders.
  put_file(files, "c.npy",
           npy<std::int32_t>({5, 3}, {0, 1, 2, 10, 11, 12, 20, 21, 22, 30, 31, 32, 40, 41, 42}));
  put_file(
      files, "f.npy",
      npy<std::int32_t>({5, 3}, {0, 10, 20, 30, 40, 1, 11, 21, 31, 41, 2, 12, 22, 32, 42}, true));
  const auto expected = read_all<std::int64_t>(*open_table(files, "c.npy"));
  for (const std::int64_t block : {1, 2, 5, 9}) {
    const auto fortran = open_table(files, "f.npy");
    CHECK(read_all<std::int64_t>(*fortran, block) == expected);
    fortran->rewind();
    CHECK(read_all<std::int64_t>(*fortran, block) == expected);
    for (const char* name : {"c.npy", "f.npy"}) {
      const auto table = open_table(files, name);
      REQUIRE(table->transpose());
      CHECK(table->rows() == 3);
      CHECK(read_all<std::int64_t>(*table, block) ==
            std::vector<std::int64_t>{0, 10, 20, 30, 40, 1, 11, 21, 31, 41, 2, 12, 22, 32, 42});
    }
  }
}

TEST_CASE("npy: a large array comes through bounded reads") {
  MemoryFileSystem base;
  std::vector<float> values(3'000'000);
  std::iota(values.begin(), values.end(), 0.0f);
  put_file(base, "big.npy", npy<float>({1'000'000, 3}, values));
  test::FaultyFileSystem files(base);
  files.faults.short_read_bytes = 77'777;
  CHECK(read_all<float>(*open_table(files, "big.npy"), 400'000) == values);
  CHECK(files.counts.largest_read <= (1u << 20));
}

TEST_CASE("npy: what is not a usable array is refused with the file and a remedy") {
  MemoryFileSystem files;
  const auto message = [&](const std::string& bytes) {
    put_file(files, "a.npy", bytes);
    return error_of<DataError>([&] { open_table(files, "a.npy"); });
  };
  const std::string data(24, '\0');
  CHECK_THAT(message(""), Contains("not a .npy file") && Contains("a.npy"));
  CHECK_THAT(message("\x93NUMPY"), Contains("not a .npy file"));
  CHECK_THAT(message("hello world, this is text"), Contains("not a .npy file"));
  CHECK_THAT(message(npy_file("<f4", {6}, data, false, 4)), Contains("version 4"));
  CHECK_THAT(message(npy_file("<f4", {6}, data).substr(0, 40)), Contains("truncated"));
  CHECK_THAT(message(npy_file("<f4", {6}, data).substr(0, 128 + 20)),
             Contains("truncated: the array ends early, a.npy, 20 bytes of data where shape (6) of "
                      "<f4 takes 24"));
  CHECK_THAT(message(npy_file("<f4", {5}, data)), Contains("goes on after the array's end"));
  CHECK_THAT(message(npy_file(">i4", {6}, data)),
             Contains("big-endian") && Contains("x.astype('<i4')"));
  CHECK_THAT(message(npy_file("|O", {3}, data)), Contains("Python objects"));
  CHECK_THAT(message(npy_file("<c8", {3}, data)), Contains("'<c8' is not supported"));
  CHECK_THAT(message(npy_file("<f3", {8}, data)), Contains("'<f3' is not supported"));
  CHECK_THAT(message(npy_file("<U4611686018427387904", {6}, data)), Contains("is too long"));
  CHECK_THAT(message(npy_file("<M8[ns]", {3}, data)), Contains("'<M8[ns]' is not supported"));
  CHECK_THAT(message(npy_file("<f4", {}, data.substr(0, 4))), Contains("0 dimensions"));
  CHECK_THAT(message(npy_file("<f4", {1, 2, 3}, data)), Contains("3 dimensions"));
  CHECK_THAT(message(npy_file("<f8", {1LL << 31, 1LL << 31}, data)), Contains("overflows"));
  CHECK_THAT(message(npy_file("<f8", {-3}, data)), Contains("shape"));
}

TEST_CASE("npy: a value that cannot be taken is named with its row and column") {
  MemoryFileSystem files;
  const auto integers = [&](const std::string& bytes) {
    put_file(files, "a.npy", bytes);
    return error_of<DataError>([&] { read_all<std::int64_t>(*open_table(files, "a.npy")); });
  };
  CHECK_THAT(integers(npy<double>({3, 2}, {0, 1, 2, 3, 4, 1.5})),
             Contains("1.5 is not an integer, a.npy, row 2, column 1;"));
  CHECK_THAT(integers(npy<double>({3, 2}, {0, 1, 2, 3, 4, 1.5}, true)),
             Contains("1.5 is not an integer, a.npy, row 2, column 1;"));
  CHECK_THAT(integers(npy<float>({2}, {0, NAN})), Contains("nan is not an integer, a.npy, row 1;"));
  CHECK_THAT(integers(npy<double>({2}, {0, 1e300})), Contains("1e+300 is out of range"));
  CHECK_THAT(integers(npy<std::uint64_t>({2}, {0, ~std::uint64_t{0}})),
             Contains("18446744073709551615 is out of range, a.npy, row 1"));
  put_file(files, "a.npy", npy<double>({2}, {0, 1e300}));
  CHECK_THAT(error_of<DataError>([&] { read_all<float>(*open_table(files, "a.npy")); }),
             Contains("1e+300 is out of range, a.npy, row 1"));
}

}  // namespace
}  // namespace ooc
