// Edge data, several labels a vertex, splits made here.
#include <catch2/catch.hpp>
#include <cmath>

#include "storage/base/errors.h"
#include "storage/import/edges/edge_data_input.h"
#include "storage/import/values/label_matrix_input.h"
#include "storage/import/values/labels_input.h"
#include "storage/import/values/random_split.h"
#include "tests/support/fake_file_system.h"
#include "tests/support/input_files.h"

namespace ooc {
namespace {

using Catch::Contains;
using test::error_of;
using test::MemoryFileSystem;
using test::npy;
using test::put_file;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST_CASE("edge data: weights, types and features are read in step") {
  MemoryFileSystem files;
  put_file(files, "w.csv", "0.5\n-2\n3\n");
  put_file(files, "t.npy", npy<std::int64_t>({3, 1}, {0, 65535, 7}));
  put_file(files, "f.npy", npy<float>({3, 2}, {1, 2, 3, 4, 5, 6}));
  ImportInputs inputs;
  inputs.edge_weights = "w.csv";
  inputs.edge_types = "t.npy";
  inputs.edge_features = "f.npy";
  const EdgeDataTables tables = open_edge_data(files, inputs);
  std::vector<float> weights(5);
  CHECK(read_edge_floats(*tables.weights, 0, weights) == 3);
  CHECK(weights[1] == -2);
  std::vector<std::uint16_t> types(2);
  CHECK(read_edge_types(*tables.types, 0, types) == 2);
  CHECK(types == std::vector<std::uint16_t>{0, 65535});
  CHECK(read_edge_types(*tables.types, 2, types) == 1);
  std::vector<float> features(6);
  CHECK(read_edge_floats(*tables.features, 0, features) == 3);
  CHECK(features[5] == 6);
  CHECK(open_edge_data(files, {}).weights == nullptr);
}

TEST_CASE("edge data: what is no weight, type or feature is refused with its row") {
  MemoryFileSystem files;
  put_file(files, "w.npy", npy<float>({3}, {1, INFINITY, 2}));
  put_file(files, "f.npy", npy<float>({2, 2}, {1, 2, 3, kNan}));
  put_file(files, "t.npy", npy<std::int32_t>({3}, {1, 65536, -1}));
  std::vector<float> floats(4);
  std::vector<std::uint16_t> types(4);
  CHECK_THAT(error_of<DataError>([&] { read_edge_floats(*open_table(files, "w.npy"), 0, floats); }),
             Contains("inf is not finite, w.npy, row 1;"));
  CHECK_THAT(error_of<DataError>([&] { read_edge_floats(*open_table(files, "f.npy"), 0, floats); }),
             Contains("nan is not finite, f.npy, row 1, column 1;"));
  CHECK_THAT(error_of<DataError>([&] { read_edge_types(*open_table(files, "t.npy"), 0, types); }),
             Contains("edge type 65536 is out of range, t.npy, row 1;"));
  ImportInputs inputs;
  inputs.edge_weights = "f.npy";
  CHECK_THAT(error_of<DataError>([&] { open_edge_data(files, inputs); }),
             Contains("edge weights need one column, not 2, f.npy"));
  put_file(files, "a.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 3\n");
  inputs.edge_weights = "a.mtx";
  CHECK_THAT(error_of<DataError>([&] { open_edge_data(files, inputs); }),
             Contains("FILE.mtx:values"));
}

template <class T>
struct Matrix {
  std::vector<T> rows;
  std::vector<std::int32_t> labelled;
};

template <class T>
Matrix<T> read_matrix(const std::string& name, const std::string& bytes) {
  MemoryFileSystem files;
  put_file(files, name, bytes);
  Matrix<T> out;
  read_label_matrix(*open_table(files, name),
                    std::is_same_v<T, float> ? LabelKind::kValues : LabelKind::kMulti, Control{},
                    [&](std::span<const std::byte> rows, std::span<const std::int32_t> labelled) {
                      const auto* values = reinterpret_cast<const T*>(rows.data());
                      out.rows.insert(out.rows.end(), values, values + rows.size() / sizeof(T));
                      out.labelled.insert(out.labelled.end(), labelled.begin(), labelled.end());
                    });
  return out;
}

TEST_CASE("multi-label: 0 and 1 in any type; entries of NaN or -1 are unlabelled") {
  const std::vector<std::uint8_t> rows = {1, 0, 1, 255, 255, 255, 0, 255, 1, 0, 0, 0};
  const std::vector<std::int32_t> labelled = {3, 0, 2, 3};
  const std::pair<std::string, std::string> inputs[] = {
      {"f.npy", npy<float>({4, 3}, {1, 0, 1, kNan, kNan, kNan, 0, -1, 1, 0, 0, 0})},
      {"i.npy", npy<std::int64_t>({4, 3}, {1, 0, 1, -1, -1, -1, 0, -1, 1, 0, 0, 0})},
      {"t.csv", "1,0,1\nnan,nan,nan\n0,nan,1\n0,0,0\n"}};
  for (const auto& [name, bytes] : inputs) {
    INFO(name);
    const auto read = read_matrix<std::uint8_t>(name, bytes);
    CHECK(read.labelled == labelled);
    CHECK(read.rows == rows);
  }
  const auto booleans = test::npy_file("|b1", {2, 2}, std::string("\1\0\0\1", 4));
  CHECK(read_matrix<std::uint8_t>("b.npy", booleans).rows == std::vector<std::uint8_t>{1, 0, 0, 1});
}

TEST_CASE("multi-label: other values are refused with row and column") {
  const auto message = [](const std::vector<float>& values) {
    return error_of<DataError>([&] {
      read_matrix<std::uint8_t>("y.npy", npy<float>({2, 2}, values));
    });
  };
  CHECK_THAT(message({1, 0, 0, 2}), Contains("2 in a matrix of labels, y.npy, row 1, column 1;") &&
                                        Contains("--label-kind values"));
  CHECK_THAT(message({1, 0, 0.5f, 0}), Contains("0.5 in a matrix of labels"));
}

TEST_CASE("values: any finite numbers; NaN is unlabelled, -1 a value") {
  const auto read =
      read_matrix<float>("y.npy", npy<double>({3, 2}, {0.5, -1, kNan, 2, kNan, kNan}));
  CHECK(read.labelled == std::vector<std::int32_t>{2, 1, 0});
  CHECK((read.rows[0] == 0.5f && read.rows[1] == -1 && std::isnan(read.rows[2])));
  CHECK(read_matrix<float>("y.csv", "3\n-7\n").rows == std::vector<float>{3, -7});
  CHECK_THAT(error_of<DataError>([] {
               read_matrix<float>("y.npy", npy<float>({2, 1}, {1, INFINITY}));
             }),
             Contains("inf is no value to predict, y.npy, row 1, column 0;"));
}

TEST_CASE("one-hot: the place of the 1; rows without one are unlabelled") {
  MemoryFileSystem files;
  put_file(files, "y.npy", npy<float>({4, 3}, {0, 0, 1, 1, 0, 0, 0, 0, 0, kNan, kNan, kNan}));
  CHECK(read_one_hot(*open_table(files, "y.npy"), Control{}) ==
        std::vector<std::int32_t>{2, 0, -1, -1});
  put_file(files, "two.csv", "0,1,0\n1,0,1\n");
  CHECK_THAT(error_of<DataError>([&] { read_one_hot(*open_table(files, "two.csv"), Control{}); }),
             Contains("two 1 in a row of one-hot labels, two.csv, line 2; ") &&
                 Contains("--label-kind multi"));
  put_file(files, "one.csv", "0\n1\n");
  CHECK_THAT(error_of<DataError>([&] { read_one_hot(*open_table(files, "one.csv"), Control{}); }),
             Contains("not a matrix of labels, one.csv, shape (2, 1)"));
}

TEST_CASE("labels: what they are follows from what they hold") {
  const auto detect = [](const std::string& name, const std::string& bytes) {
    MemoryFileSystem files;
    put_file(files, name, bytes);
    const auto table = open_table(files, name);
    const DetectedLabels found = detect_labels(*table, Control{});
    std::vector<float> first(static_cast<std::size_t>(table->cols()));
    CHECK(table->read(std::span<float>(first)) == 1);  // from the start again
    return found;
  };
  CHECK(detect("y.npy", npy<std::int64_t>({3}, {0, 5, -1})).kind == LabelChoice::kClasses);
  CHECK(detect("y.npy", npy<float>({3}, {0, 5, kNan})).kind == LabelChoice::kClasses);
  CHECK(detect("y.npy", npy<float>({3}, {0, 5, 2.5f})).kind == LabelChoice::kValues);
  CHECK(detect("y.csv", "1\n2\n-1\n").kind == LabelChoice::kClasses);
  CHECK(detect("y.csv", "1\n2\n0.5\n").kind == LabelChoice::kValues);
  CHECK(detect("y.npy", npy<float>({2, 2}, {3, 5, -1, 2.5f})).kind == LabelChoice::kValues);
  const DetectedLabels several = detect("y.npy", npy<float>({2, 2}, {1, 1, kNan, kNan}));
  CHECK((several.kind == LabelChoice::kMulti && !several.one_hot));
  const DetectedLabels one = detect("y.npy", npy<float>({3, 2}, {1, 0, kNan, kNan, 0, 1}));
  CHECK((one.kind == LabelChoice::kMulti && one.one_hot));
  CHECK_FALSE(detect("y.npy", npy<float>({1, 2}, {kNan, kNan})).one_hot);
  CHECK_FALSE(detect("y.npy", npy<float>({2, 2}, {1, 0, 0, 0})).one_hot);
  CHECK_FALSE(detect("y.npy", npy<float>({2, 2}, {1, 0, 1, kNan})).one_hot);
  CHECK_THAT(error_of<DataError>([&] {
               detect("y.npy", npy<float>({2, 2}, {1, 0, 3, 0}));
             }),
             Contains("3 in a matrix of labels, y.npy, row 1, column 0;"));
}

TEST_CASE("labels: NaN is unlabelled") {
  MemoryFileSystem files;
  put_file(files, "y.npy", npy<float>({3}, {4, kNan, 0}));
  put_file(files, "y.csv", "4\nnan\n0.0\n");
  for (const char* name : {"y.npy", "y.csv"}) {
    CHECK(read_labels(*open_table(files, name), Control{}) == std::vector<std::int32_t>{4, -1, 0});
  }
}

TEST_CASE("split: shares are percent and say what is wrong with them") {
  const SplitShares shares = parse_split_shares("60/20.5/10");
  CHECK((shares.train == 60 && shares.valid == 20.5 && shares.test == 10));
  CHECK(parse_split_shares("100/0/0").valid == 0);
  const SplitShares of_one = parse_split_shares("0.6/0.25/.15");
  CHECK((of_one.train == Approx(60) && of_one.valid == Approx(25) && of_one.test == Approx(15)));
  const auto message = [](const char* text) {
    return error_of<UsageError>([&] { parse_split_shares(text); });
  };
  for (const char* text : {"", "60", "60/20", "60/20/20/", "60/20/20/1", "a/b/c", "60,20,20"}) {
    CHECK_THAT(message(text), Contains("is not three numbers") && Contains("as 60/20/20"));
  }
  CHECK_THAT(message("60/30/20"), Contains("--split 60/30/20 is 110 percent"));
  CHECK_THAT(message("0.7/0.2/0.15"), Contains("adds up to 1.05"));
  CHECK_THAT(message("60/-1/20"), Contains("share"));
  CHECK_THAT(message("nan/1/20"), Contains("share"));
  CHECK_THAT(message("0/50/50"), Contains("nothing to train on"));
  CHECK_THAT(message("1/0/0"), Contains("is a percent in all"));
}

std::array<std::int64_t, 4> counts_of(const std::vector<std::uint8_t>& splits) {
  std::array<std::int64_t, 4> counts = {};
  for (const std::uint8_t split : splits) ++counts[split];
  return counts;
}

TEST_CASE("split: exact counts over the labelled, the same for a seed on every machine") {
  std::vector<std::int32_t> labels(1000, 0);
  for (std::size_t i = 0; i < labels.size(); i += 3) labels[i] = -1;  // 666 are labelled
  const auto splits = random_split(labels, {60, 20, 20}, 1);
  // 399.6, then 532.8 of 666, rounded
  CHECK(counts_of(splits) == std::array<std::int64_t, 4>{334, 400, 133, 133});
  for (std::size_t i = 0; i < labels.size(); ++i) CHECK((labels[i] >= 0 || splits[i] == 0));
  CHECK(random_split(labels, {60, 20, 20}, 1) == splits);
  CHECK(random_split(labels, {60, 20, 20}, 2) != splits);
  CHECK(counts_of(random_split(labels, {1, 0, 10}, 1)) ==
        std::array<std::int64_t, 4>{927, 7, 0, 66});
  const std::vector<std::int32_t> few(12, 0);
  // computed by the same definition in Python
  CHECK(random_split(few, {50, 25, 25}, 7) ==
        std::vector<std::uint8_t>{3, 2, 2, 1, 1, 1, 1, 1, 3, 3, 1, 2});
  CHECK_THAT(error_of<DataError>([&] {
               random_split(few, {96, 2, 2}, 7);
             }),
             Contains("the valid split would be empty, 2 percent of 12 labelled vertices"));
  CHECK_THAT(error_of<DataError>([&] {
               random_split({}, {60, 20, 20}, 7);
             }),
             Contains("0 labelled vertices; give labels"));
}

TEST_CASE("split: every vertex is as likely in every split, and independent of its place") {
  const std::vector<std::int32_t> labels(20000, 0);
  const auto splits = random_split(labels, {50, 25, 25}, 3);
  for (std::size_t begin = 0; begin < labels.size(); begin += 5000) {
    const std::vector<std::uint8_t> part(splits.begin() + begin, splits.begin() + begin + 5000);
    const auto counts = counts_of(part);
    CHECK(counts[1] == Approx(2500).margin(150));
    CHECK(counts[2] == Approx(1250).margin(130));
  }
}

}  // namespace
}  // namespace ooc
