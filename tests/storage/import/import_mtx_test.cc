#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "storage/base/errors.h"
#include "storage/import/rows/features_input.h"
#include "storage/import/values/labels_input.h"
#include "tests/support/edge_files.h"
#include "tests/support/fake_file_system.h"
#include "tests/support/input_files.h"

namespace ooc {
namespace {

using Catch::Contains;
using test::error_of;
using test::MemoryFileSystem;
using test::put_file;
using Integers = std::vector<std::int64_t>;
using Floats = std::vector<float>;

template <class T>
std::vector<T> read_mtx(const std::string& text, const std::string& member = "",
                        const std::string& name = "a.mtx", std::int64_t rows_at_once = 2) {
  MemoryFileSystem files;
  put_file(files, name, name.ends_with(".gz") ? test::gzip(text) : text);
  const auto table = open_table(files, name + member);
  const auto all = test::read_all<T>(*table, rows_at_once);
  CHECK(table->rows() * table->cols() == static_cast<std::int64_t>(all.size()));
  table->rewind();
  CHECK(test::read_all<T>(*table, 5) == all);
  return all;
}

std::string mtx_error(const std::string& text, const std::string& member = "") {
  return error_of<DataError>([&] { read_mtx<std::int64_t>(text, member); });
}

const std::string kGeneral =
    "%%MatrixMarket matrix coordinate real general\n% a comment\n\n4 4 3\n1 2 0.5\n 4 1 -2e0 \n"
    "3\t3 7\n";
const std::string kSymmetric =
    "%%MatrixMarket matrix coordinate integer symmetric\n4 4 3\n2 1 5\n3 3 -6\n4 2 7\n";

TEST_CASE("mtx: coordinates are edges, one less; values are a column of their own") {
  CHECK(read_mtx<std::int64_t>(kGeneral) == Integers{0, 1, 3, 0, 2, 2});
  CHECK(read_mtx<float>(kGeneral, ":values") == Floats{0.5f, -2, 7});
  CHECK(read_mtx<float>(kGeneral, ":values", "a.mtx.gz") == Floats{0.5f, -2, 7});
  CHECK(read_mtx<std::int64_t>(kGeneral, "", "a.mtx.gz") == Integers{0, 1, 3, 0, 2, 2});
  CHECK(read_mtx<std::int64_t>("%%matrixmarket matrix coordinate pattern general\n2 2 0\n", "",
                               "a.mtx") == Integers{});
  MemoryFileSystem files;
  put_file(files, "a.mtx", kGeneral);
  CHECK(open_table(files, "a.mtx")->stated_vertices() == 4);
  CHECK_FALSE(open_table(files, "a.mtx:values")->stated_vertices());
}

TEST_CASE("mtx: a symmetric entry is followed by its mirror image, in every buffer size") {
  const Integers edges = {1, 0, 0, 1, 2, 2, 3, 1, 1, 3};
  for (const std::int64_t rows : {1, 2, 3, 7}) {
    CHECK(read_mtx<std::int64_t>(kSymmetric, "", "a.mtx", rows) == edges);
    CHECK(read_mtx<std::int64_t>(kSymmetric, ":values", "a.mtx", rows) == Integers{5, 5, -6, 7, 7});
  }
  MemoryFileSystem files;
  put_file(files, "a.mtx", kSymmetric);
  auto table = open_table(files, "a.mtx");
  CHECK_FALSE(table->known_rows());
  CHECK(table->rows() == 5);
  CHECK(table->where(4) == "a.mtx, line 5");
  CHECK_THAT(error_of<DataError>([&] { test::read_edges(std::move(table), 3); }),
             Contains("vertex id 3 is not below the vertex count 3, a.mtx, line 5"));
}

TEST_CASE("mtx: what follows the last entry that the header says is refused, with its line") {
  const auto refusal = [](const std::string& text, const std::string& name) {
    MemoryFileSystem files;
    put_file(files, name, name.ends_with(".gz") ? test::gzip(text) : text);
    return error_of<DataError>([&] { test::read_edges(open_table(files, name), 4); });
  };
  for (const std::string name : {"a.mtx", "a.mtx.gz"}) {
    for (const std::string last : {"2 1 3\n", "not an entry\n", "x"}) {
      for (const std::string& text : {kGeneral, kSymmetric, kGeneral + "\n% a comment\n"}) {
        INFO(name << " " << text << last);
        const auto line = 1 + std::count(text.begin(), text.end(), '\n');
        CHECK_THAT(refusal(text + last, name),
                   Contains("more entries than the 3 that the header says") &&
                       Contains(fmt::format("{}, line {}", name, line)));
      }
    }
    std::string crlf = "%%MatrixMarket matrix coordinate pattern general\n4 4 1\n1 2\n4 1\n";
    for (std::size_t at = 0; (at = crlf.find('\n', at)) != std::string::npos; at += 2) {
      crlf.insert(at, 1, '\r');
    }
    CHECK_THAT(refusal(crlf, name), Contains("more entries than the 1") && Contains("line 4"));
  }
}

TEST_CASE("mtx: a dense array streams in rows though it lies in columns") {
  const std::string text =
      "%%MatrixMarket matrix array real general\n3 2\n1\n2\n3\n% between\n4.5\n5\n6\n";
  for (const char* name : {"a.mtx", "a.mtx.gz"}) {
    CHECK(read_mtx<float>(text, "", name, 1) == Floats{1, 4.5f, 2, 5, 3, 6});
    CHECK(read_mtx<float>(text, "", name, 7) == Floats{1, 4.5f, 2, 5, 3, 6});
  }
  CHECK(read_mtx<std::int64_t>("%%MatrixMarket matrix array integer general\n3 1\n1\n-1\n0\n") ==
        Integers{1, -1, 0});
  MemoryFileSystem files;
  put_file(files, "y.mtx", "%%MatrixMarket matrix array integer general\n3 1\n1\n-1\n0\n");
  CHECK(read_labels(*open_table(files, "y.mtx"), Control{}) == std::vector<std::int32_t>{1, -1, 0});
}

TEST_CASE("mtx: kinds that cannot be read are refused by name") {
  const auto kind = [](const std::string& words) {
    return mtx_error("%%MatrixMarket matrix " + words + "\n2 2 1\n2 1 1\n");
  };
  CHECK_THAT(kind("coordinate real skew-symmetric"),
             Contains("a skew-symmetric coordinate matrix cannot be read, a.mtx; write it as "
                      "general or symmetric"));
  CHECK_THAT(kind("coordinate complex general"), Contains("a matrix of complex values"));
  CHECK_THAT(kind("coordinate complex hermitian"), Contains("cannot be read"));
  CHECK_THAT(kind("array real symmetric"), Contains("write it as general"));
  CHECK_THAT(kind("array pattern general"), Contains("cannot be read"));
  CHECK_THAT(mtx_error("1 2\n"), Contains("not a Matrix Market file"));
  CHECK_THAT(mtx_error(""), Contains("not a Matrix Market file"));
}

TEST_CASE("mtx: what does not fit its header is refused with its line") {
  const std::string head = "%%MatrixMarket matrix coordinate pattern general\n";
  CHECK_THAT(mtx_error(head + "3 3 2\n1 2\n"), Contains("truncated: 1 entries where the header "
                                                        "says 2, a.mtx;"));
  CHECK_THAT(mtx_error(head + "3 3 1\n1 2\n2 3\n"), Contains("more entries than the 1"));
  CHECK_THAT(mtx_error(head + "3 3 1\n1 4\n"),
             Contains("index 4 is not within 1 to 3, a.mtx, line 3;"));
  CHECK_THAT(mtx_error(head + "3 3 1\n0 1\n"), Contains("index 0"));
  CHECK_THAT(mtx_error(head + "3 3 1\n1 x\n"), Contains("'x' is not a number, a.mtx, line 3"));
  CHECK_THAT(mtx_error(head + "3 3 1\n1\n"), Contains("a field is missing"));
  CHECK_THAT(mtx_error(head + "3 3 1\n1 2 1\n"), Contains("too many fields"));
  CHECK_THAT(mtx_error(head + "3 2 1\n1 2\n"), Contains("not square"));
  CHECK_THAT(mtx_error(head + "3 3 1000000000000\n1 2\n"),
             Contains("1000000000000 entries do not fit a file of"));
  CHECK_THAT(mtx_error(head + "3 3\n"), Contains("a field is missing"));
  CHECK_THAT(mtx_error(head + "3 3 1\n1 2\n", ":values"), Contains("holds no values"));
  CHECK_THAT(mtx_error(kGeneral, ":weights"), Contains("no part 'weights'"));
  CHECK_THAT(mtx_error("%%MatrixMarket matrix array real general\n2 1\n1\n"),
             Contains("truncated: 1 values where 2 x 1 are needed"));
  CHECK_THAT(mtx_error("%%MatrixMarket matrix array real general\n1 1\n1\n2\n"),
             Contains("more values than the header says"));
  CHECK_THAT(mtx_error(kGeneral, ":values"), Contains("0.5 is not an integer, a.mtx, line 5"));
}

TEST_CASE("mtx: a matrix of edges is neither features nor labels") {
  MemoryFileSystem files;
  put_file(files, "a.mtx", kGeneral);
  CHECK_THAT(error_of<DataError>([&] { check_feature_cols(*open_table(files, "a.mtx")); }),
             Contains("a matrix of edges lies where features are needed, a.mtx"));
  CHECK_THAT(error_of<DataError>([&] { read_labels(*open_table(files, "a.mtx"), Control{}); }),
             Contains("a matrix of edges lies where labels are needed, a.mtx"));
}

}  // namespace
}  // namespace ooc
