// Edge data, several labels a vertex, splits made here.
#include <catch2/catch.hpp>
#include <cmath>

#include "storage/base/errors.h"
#include "storage/import/edges/edge_data_input.h"
#include "storage/import/values/labels_input.h"
#include "storage/import/values/multi_labels_input.h"
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

struct Multi {
  MultiLabels labels;
  std::vector<std::uint8_t> rows;
};

Multi read_multi(const std::string& name, const std::string& bytes) {
  MemoryFileSystem files;
  put_file(files, name, bytes);
  Multi out;
  out.labels = read_multi_labels(*open_table(files, name), Control{},
                                 [&](std::span<const std::uint8_t> rows) {
                                   out.rows.insert(out.rows.end(), rows.begin(), rows.end());
                                 });
  return out;
}

TEST_CASE("multi-label: 0 and 1 in any type; rows of NaN or -1 are unlabelled") {
  const std::vector<std::uint8_t> rows = {1, 0, 1, 255, 255, 255, 0, 1, 1, 0, 0, 0};
  const std::vector<std::uint8_t> labelled = {1, 0, 1, 1};
  const std::pair<std::string, std::string> inputs[] = {
      {"f.npy", npy<float>({4, 3}, {1, 0, 1, kNan, kNan, kNan, 0, 1, 1, 0, 0, 0})},
      {"i.npy", npy<std::int64_t>({4, 3}, {1, 0, 1, -1, -1, -1, 0, 1, 1, 0, 0, 0})},
      {"t.csv", "1,0,1\nnan,nan,nan\n0,1,1\n0,0,0\n"}};
  for (const auto& [name, bytes] : inputs) {
    INFO(name);
    const Multi read = read_multi(name, bytes);
    CHECK(read.labels.classes == 3);
    CHECK(read.labels.labelled == labelled);
    CHECK(read.rows == rows);
  }
  const auto booleans = test::npy_file("|b1", {2, 2}, std::string("\1\0\0\1", 4));
  CHECK(read_multi("b.npy", booleans).rows == std::vector<std::uint8_t>{1, 0, 0, 1});
}

TEST_CASE("multi-label: other values are refused with row and column") {
  const auto message = [](const std::vector<float>& values, std::int64_t cols = 2) {
    return error_of<DataError>([&] {
      read_multi("y.npy",
                 npy<float>({static_cast<std::int64_t>(values.size()) / cols, cols}, values));
    });
  };
  CHECK_THAT(message({1, 0, 0, 2}), Contains("2 in a matrix of labels, y.npy, row 1, column 1;"));
  CHECK_THAT(message({1, 0, 0.5f, 0}), Contains("0.5 in a matrix of labels"));
  CHECK_THAT(message({1, 0, kNan, 0}), Contains("labelled in part, y.npy, row 1, column 1;"));
  CHECK_THAT(message({1, kNan, 0, 0}), Contains("labelled in part, y.npy, row 0, column 1;"));
  CHECK_THAT(message({1, 0}, 1), Contains("not a matrix of labels, y.npy, shape (2, 1)"));
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
