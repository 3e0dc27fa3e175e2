#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "storage/base/errors.h"
#include "storage/import/formats/table_reader.h"
#include "tests/support/fake_file_system.h"
#include "tests/support/input_files.h"

namespace ooc {
namespace {

using Catch::Contains;
using test::error_of;
using test::MemoryFileSystem;
using test::put_file;

template <class T>
std::vector<T> read_text(const std::string& text, const std::string& name = "a.csv",
                         std::int64_t rows_at_once = 2) {
  MemoryFileSystem files;
  put_file(files, name, text);
  const auto table = open_table(files, name);
  const auto all = test::read_all<T>(*table, rows_at_once);
  CHECK(table->rows() * table->cols() == static_cast<std::int64_t>(all.size()));
  return all;
}

using Integers = std::vector<std::int64_t>;
using Floats = std::vector<float>;

TEST_CASE("text: separators, blanks, line ends, comments, headers") {
  const Integers expected = {0, 1, 2, 3};
  for (const char* text :
       {"0,1\n2,3\n", "0,1\n2,3", "0, 1\r\n2 ,3\r\n", "0\t1\n2\t3\n", "0;1\n2;3\n", "0 1\n2   3\n",
        "# a comment\n\n0,1\n  # another\n2,3 # and one more\n\n", "source,target\n0,1\n2,3\n",
        "  0  1\n\t2 \t 3  \n", "\xEF\xBB\xBFsrc dst\n0 1\n2 3\n", "+0,1.0\n2e0,3\n",
        "\"0\",\"1\"\n\"2\", \" 3 \"\n", "\"src\",\"dst\"\n\"0\",1\n2,\"3\"\n"}) {
    INFO(text);
    CHECK(read_text<std::int64_t>(text) == expected);
  }
  CHECK(read_text<float>("1.5,-2e-3\nnan,inf\n")[1] == -2e-3f);
  CHECK(read_text<std::int64_t>("True\nFalse\n") == Integers{1, 0});
  CHECK(read_text<std::int64_t>("").empty());
  CHECK(read_text<std::int64_t>("# nothing\n").empty());
  CHECK(read_text<std::int64_t>("label\n").empty());
}

template <class T>
std::vector<T> read_columns(const std::string& text, const std::string& columns,
                            const std::string& left_out = "") {
  MemoryFileSystem files;
  put_file(files, "a.csv", text);
  TextColumns rest;
  rest.left_out = left_out;
  const auto table = open_table(files, columns.empty() ? "a.csv" : "a.csv:" + columns, rest);
  return test::read_all<T>(*table);
}

TEST_CASE("text: columns are chosen by name or number, in any order") {
  const std::string named = "who,x 1,2-3,\"a, b\"\nann,1,2,3\n\"Lee, B\",4,5,6\n";
  CHECK(read_columns<std::int64_t>(named, "2-4") == Integers{1, 2, 3, 4, 5, 6});
  CHECK(read_columns<std::int64_t>(named, "4,x 1") == Integers{3, 1, 6, 4});
  CHECK(read_columns<std::int64_t>(named, "2-3") == Integers{2, 5});  // a name before a range
  CHECK(read_columns<std::int64_t>(named, "", "who") == Integers{1, 2, 3, 4, 5, 6});
  CHECK(read_columns<float>("a\t1\t0.5\nb\t2\t1.5\n", "3") == Floats{0.5f, 1.5f});
  CHECK(read_columns<float>("a  1 0.5\nb 2   1.5\n", "", "1") == Floats{1, 0.5f, 2, 1.5f});
  CHECK(read_columns<std::int64_t>("# x\n#d,1\n% y\n%e,2\n", "2") == Integers{1, 2});
  CHECK(read_columns<std::int64_t>(",src,dst\n0,5,7\n1,6,8\n", "src,dst") ==
        Integers{5, 7, 6, 8});  // as pandas writes an index
  const auto message = [&](const std::string& columns) {
    return error_of<DataError>([&] { read_columns<std::int64_t>(named, columns); });
  };
  CHECK_THAT(message("y"),
             Contains("there is no column 'y', a.csv; give a number from 1 to 4, or a "
                      "name in the first line: who,x 1,2-3"));
  CHECK_THAT(message("0"), Contains("no column '0'"));
  CHECK_THAT(message("5"), Contains("no column '5'"));
  CHECK_THAT(message("4-2"), Contains("no column '4-2'"));
  CHECK_THAT(message("x 1,2"), Contains("column 2 is chosen twice"));
  CHECK_THAT(message("1"), Contains("'ann' is not a number, a.csv:1, line 2, field 1"));
}

TEST_CASE("text: lines of KONECT that start with a percent sign are comments") {
  CHECK(read_text<std::int64_t>("% sym unweighted\n% 6 5 5\n1 2\n2 3\n") == Integers{1, 2, 2, 3});
}

TEST_CASE("text: gzip, also in several members, reads like plain text") {
  std::string text;
  Integers expected;
  for (std::int64_t i = 0; i < 300'000; ++i) {
    text += fmt::format("{},{}\n", i, i * 7);
    expected.push_back(i);
    expected.push_back(i * 7);
  }
  CHECK(read_text<std::int64_t>(text, "a.csv", 1000) == expected);
  CHECK(read_text<std::int64_t>(test::gzip(text), "a.csv.gz", 1000) == expected);
  const std::string two = test::gzip(text.substr(0, 1234)) + test::gzip(text.substr(1234));
  CHECK(read_text<std::int64_t>(two, "a.txt.gz", 1000) == expected);

  // Zeros pad what came off a tape or a block device; more than a buffer of them.
  const std::string padded = test::gzip("0,0\n") + std::string(300'000, '\0');
  CHECK(read_text<std::int64_t>(padded, "a.csv.gz") == Integers{0, 0});
  CHECK_THAT(error_of<DataError>([&] { read_text<std::int64_t>(padded + "x", "a.csv.gz"); }),
             Contains("a.csv.gz"));

  const std::string whole = test::gzip(text);
  CHECK_THAT(error_of<DataError>(
                 [&] { read_text<std::int64_t>(whole.substr(0, whole.size() - 5), "a.csv.gz"); }),
             Contains("ends early, a.csv.gz"));
  std::string damaged = whole;
  damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 0x21);
  CHECK_THAT(error_of<DataError>([&] { read_text<std::int64_t>(damaged, "a.csv.gz"); }),
             Contains("a.csv.gz"));
  CHECK_THAT(error_of<DataError>([&] { read_text<std::int64_t>("plain text", "a.csv.gz"); }),
             Contains("gzip data is corrupt"));
}

TEST_CASE("text: a line longer than the buffer is read whole") {
  std::string line = "1";
  for (int i = 0; i < 1'500'000; ++i) line += ",2";
  const auto values = read_text<float>(line + "\n" + line + "\n");
  CHECK(values.size() == 2 * 1'500'001);
}

TEST_CASE("text: the element kind is that of the first row") {
  MemoryFileSystem files;
  const auto kind = [&](const std::string& text) {
    put_file(files, "a.csv", text);
    return open_table(files, "a.csv")->kind();
  };
  CHECK(kind("1,2\n") == ElementKind::kInteger);
  CHECK(kind("1,2.0\n") == ElementKind::kFloat);
  CHECK(kind("True\n0\n") == ElementKind::kBool);
}

TEST_CASE("text: errors name the line, the field and the value") {
  const auto message = [](const std::string& text) {
    return error_of<DataError>([&] { read_text<std::int64_t>(text); });
  };
  CHECK_THAT(message("# c\n0,1\n2,x3\n"), Contains("'x3' is not a number, a.csv, line 3, field 2"));
  CHECK_THAT(message("0,1\n2,3,4\n"),
             Contains("3 fields where the first line has 2, a.csv, line 2"));
  CHECK_THAT(message("a,b\r\n0,1\r\n2\r\n"), Contains("1 fields") && Contains("line 3"));
  CHECK_THAT(message("0,1\n2,\n"), Contains("'' is not a number, a.csv, line 2, field 2"));
  CHECK_THAT(message("0,1\n2,1.5\n"), Contains("'1.5' is not an integer, a.csv, line 2"));
  CHECK_THAT(message("0,1\n2,99999999999999999999\n"), Contains("is out of range, a.csv, line 2"));
  CHECK_THAT(message("0,x\n2,3\n"), Contains("'x' is not a number, a.csv, line 1"));
  CHECK_THAT(message("0,1\n2,\"\"\n"), Contains("'' is not a number, a.csv, line 2, field 2"));
  CHECK_THAT(message("0,1\n2,\"3\n"),
             Contains("quote that is not closed on its line, a.csv, line 2"));
  CHECK_THAT(message("0;1,5\n"), Contains("'1,5' is not a number"));
  CHECK_THAT(error_of<DataError>([&] { read_text<float>("1\n1e39\n"); }),
             Contains("'1e39' is out of range, a.csv, line 2"));

  MemoryFileSystem files;
  put_file(files, "a.csv", "h\n\n5\n# c\n6\n");
  CHECK(open_table(files, "a.csv")->where(1) == "a.csv, line 5");
}

TEST_CASE("text: counting the rows answers to an interruption") {
  MemoryFileSystem files;
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += "7\n";
  put_file(files, "a.csv", text);
  const auto table = open_table(files, "a.csv");
  const std::atomic<bool> stop{true};
  CHECK_THROWS_AS(table->count_rows(Control{{}, &stop}), Interrupted);
  CHECK_FALSE(table->known_rows());
  CHECK(table->rows() == 10'000);
}

TEST_CASE("table: an unknown kind of file is refused, a missing one is a data error") {
  MemoryFileSystem files;
  CHECK_THAT(error_of<DataError>([&] { open_table(files, "edges.parquet"); }),
             Contains("edges.parquet; give one that ends in .npy, .npz, .csv"));
  CHECK_THROWS_AS(open_table(files, "missing.npy"), DataError);
  CHECK_THROWS_AS(open_table(files, "missing.npz"), DataError);
  CHECK_THROWS_AS(open_table(files, "missing.csv.gz"), DataError);
}

}  // namespace
}  // namespace ooc
