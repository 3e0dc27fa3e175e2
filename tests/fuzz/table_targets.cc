#include <algorithm>
#include <cmath>

#include "storage/import/formats/table_reader.h"
#include "storage/import/ids/id_array.h"
#include "storage/import/ids/id_table.h"
#include "storage/import/rows/features_input.h"
#include "storage/import/values/label_matrix_input.h"
#include "storage/import/values/labels_input.h"
#include "storage/io/hdf5_file.h"
#include "tests/fuzz/targets.h"
#include "tests/support/fake_file_system.h"
#include "tests/support/input_files.h"

namespace ooc::fuzz {
namespace {

// A sparse matrix of few bytes may stand for a dense one of any size: reading stops here.
constexpr std::int64_t kMostElements = 1 << 22;

template <class T>
void read_some(TableReader& table) {
  if (table.cols() > kMaxFeatureCols) return;
  std::vector<T> block(static_cast<std::size_t>(3 * table.cols()));
  std::int64_t rows = 0;
  while (const std::int64_t count = table.read(std::span<T>(block))) {
    rows += count;
    if (rows * table.cols() > kMostElements) return;
  }
  if (rows > 0) table.where(rows - 1);
}

// Opens the table for each use and reads it the way import does.
template <class Open>
void use_table(Open&& open) {
  tolerate([&] {
    const auto table = open();
    check_feature_cols(*table);
    read_some<float>(*table);
    table->rewind();
    read_some<float>(*table);
  });
  tolerate([&] { read_some<std::int64_t>(*open()); });
  tolerate([&] {
    const auto table = open();
    table->read_nan_as(-1);
    if (table->transpose()) read_some<std::int64_t>(*table);
  });
  tolerate([&] {
    const auto table = open();
    if (table->rows() < kMostElements) read_labels(*table, Control{});
  });
  tolerate([&] {
    const auto table = open();
    if (table->cols() > kMaxLabelColumns || table->rows() * table->cols() > kMostElements) return;
    detect_labels(*table, Control{});
    read_label_matrix(*table, LabelKind::kMulti, Control{}, [](auto, auto) {});
  });
}

void use_file(const std::string& name, Bytes data, const std::string& input) {
  test::MemoryFileSystem files;
  const std::string_view text(reinterpret_cast<const char*>(data.data()), data.size());
  test::put_file(files, name, text);
  use_table([&] { return open_table(files, input); });
}

// Collects the ids of a table, and then numbers them.
void use_ids(TableReader& table, StringIds& ids) {
  read_some<std::int64_t>(table);
  if (!ids.complete()) return;
  ids.finish();
  table.rewind();
  read_some<std::int64_t>(table);
  OOC_CHECK(ids.size() == 0 || ids.find(ids[0]) == 0);
}

std::vector<std::pair<std::string, std::string>> sparse_members() {
  return {{"indices.npy", test::npy<std::int32_t>({4}, {1, 0, 2, 1})},
          {"indptr.npy", test::npy<std::int64_t>({4}, {0, 1, 3, 4})},
          {"format.npy", test::npy_file("|S3", {}, "csr")},
          {"shape.npy", test::npy<std::int64_t>({2}, {3, 3})},
          {"data.npy", test::npy<float>({4}, {1, 2, 3, 4})}};
}

}  // namespace

int fuzz_npy(Bytes data) {
  use_file("a.npy", data, "a.npy");
  test::MemoryFileSystem files;
  test::put_file(files, "a.npy", {reinterpret_cast<const char*>(data.data()), data.size()});
  tolerate([&] {
    StringIds ids(4 << 20);
    use_ids(*open_id_array(open_byte_source(files, "a.npy"), {}, ids), ids);
  });
  return 0;
}

int fuzz_npz(Bytes data) {
  use_file("a.npz", data, "a.npz");
  use_file("a.npz", data, "a.npz:x");
  return 0;
}

int fuzz_csv(Bytes data) {
  if (data.empty()) return 0;
  const bool packed = (data[0] & std::byte{1}) != std::byte{0};
  const std::string name = packed ? "a.csv.gz" : "a.csv";
  use_file(name, data.subspan(1), name);
  return 0;
}

int fuzz_ids(Bytes data) {
  test::MemoryFileSystem files;
  test::put_file(files, "a.csv", {reinterpret_cast<const char*>(data.data()), data.size()});
  const auto open = [&] { return open_byte_source(files, "a.csv"); };
  tolerate([&] {
    find_string_id(open(), {}, NumberKind::kIntegers, Control{});
    StringIds ids(4 << 20);
    use_ids(*open_id_table(open(), "ids.csv", {}, HeaderRule::kNames, ids), ids);
  });
  return 0;
}

int fuzz_mtx(Bytes data) {
  use_file("a.mtx", data, "a.mtx");
  use_file("a.mtx", data, "a.mtx:values");
  return 0;
}

int fuzz_hdf5(Bytes data) {
  static const test::TemporaryDirectory directory;  // the library wants a path
  const std::string path = directory / "a.h5";
  const std::string_view text(reinterpret_cast<const char*>(data.data()), data.size());
  test::put_file(posix_file_system(), path, text);
  use_table([&] { return open_table(posix_file_system(), path); });
  return 0;
}

std::vector<std::string> npy_seeds() {
  return {test::npy<float>({4, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}),
          test::npy<double>({3, 2}, {1, 2, 3, 4, 5, NAN}, true),
          test::npy<std::int64_t>({2, 3}, {0, 1, 2, 3, 4, 5}),
          test::npy<std::uint64_t>({3}, {0, 1, 2}),
          test::npy_file("<f2", {4}, std::string("\0\x3c\0\x40\0\x42\0\x7e", 8)),
          test::npy_file("|b1", {5}, std::string("\1\0\0\1\0", 5), false, 2),
          test::npy_file("|S2", {2, 2}, std::string("aabb\xc3\xa4z\0", 8)),
          test::npy_file(">U1", {3}, std::string("\0\0\0a\0\1\xf6\0\0\0\0\xe4", 12)),
          test::npy_file("<U2", {2}, std::string("a\0\0\0\xac\x20\0\0b\0\0\0\0\0\0\0", 16))};
}

std::vector<std::string> npz_seeds() {
  const std::string array = test::npy<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const std::string columns = test::npy<float>({2, 3}, {1, 2, 3, 4, 5, 6}, true);
  return {test::zip({{"x.npy", array}}, false),  test::zip({{"x.npy", array}}, true),
          test::zip({{"x.npy", columns}}, true), test::zip({{"x.npy", array}, {"y", array}}, true),
          test::zip(sparse_members(), true),     test::zip(sparse_members(), false)};
}

std::vector<std::string> csv_seeds() {
  const std::string plain = std::string(1, '\0');
  const std::string text = "a,b,c\n1.5,-2e3,7\n+0.25,nan,8\n\"3\",inf,-9\n";
  return {plain + text,
          plain + "0 1\n2\t 3\n# a comment\n4 5 # another\n",
          plain + "1;2\r\n3;4\r\n",
          plain + "0\t1\n2\t3",
          plain + "True\nFalse\n",
          plain + "\xEF\xBB\xBFid\n9223372036854775807\n-1\n1e5\n",
          std::string(1, '\1').append(test::gzip(text)).append(test::gzip("4,5,6\n"))};
}

std::vector<std::string> ids_seeds() {
  return {"source,target\n\"Smith, John\",a#b\n# comment\n\xC3\x89mile,\"say \"\"hi\"\"\"\n",
          "1,2\n3,4x\n",
          "New York\tParis\r\nParis\tBonn\n",
          "a b\n\"c d\"   e\n",
          "\xEF\xBB\xBFid\n7\n07\n-1\n",
          "\"a;b\";c\n"};
}

std::vector<std::string> mtx_seeds() {
  return {"%%MatrixMarket matrix coordinate pattern general\n% c\n3 3 2\n1 2\n3 1\n",
          "%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n1 1 0.5\n2 1 -2e1\n3 2 7\n",
          "%%MatrixMarket matrix coordinate integer general\n2 2 2\n1 2 5\n2 1 -6\n",
          "%%MatrixMarket matrix array real general\n2 3\n1\n2\n3.5\n4\n5\n6\n",
          "%%MatrixMarket matrix array integer general\n3 1\n1\n-1\n0\n"};
}

std::vector<std::string> hdf5_seeds() {
  std::vector<std::string> seeds;
  const std::vector<float> floats = {1, 2, 3, 4, 5, 6};
  const std::vector<std::int64_t> integers = {0, 1, 2, 3};
  for (int kind = 0; kind < 2; ++kind) {
    Hdf5Writer writer;
    if (kind == 0) writer.write_array("/features", DType::kF32, {3, 2}, floats.data());
    if (kind == 1) writer.write_array("/a/edges", DType::kI64, {2, 2}, integers.data());
    const std::vector<std::byte> bytes = writer.bytes();
    seeds.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return seeds;
}

}  // namespace ooc::fuzz
