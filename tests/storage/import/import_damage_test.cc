// Inputs with random damage: a reader either reads something or throws a DataError, nothing else.
#include <catch2/catch.hpp>
#include <random>

#include "storage/base/errors.h"
#include "storage/import/formats/table_reader.h"
#include "storage/import/rows/features_input.h"
#include "tests/support/fake_file_system.h"
#include "tests/support/input_files.h"

namespace ooc {
namespace {

using test::npy;
using test::npy_file;

std::string damage(std::string bytes, std::mt19937& random) {
  const std::uint32_t kind = random() % 4;
  if (kind == 0) return bytes.substr(0, random() % bytes.size());
  if (kind == 1) return bytes.insert(random() % bytes.size(), random() % 40, '9');
  for (std::uint32_t i = 0; i <= random() % 4; ++i) {
    bytes[random() % bytes.size()] = static_cast<char>(random());
  }
  return bytes;
}

void read_through(FileSystem& files, const std::string& name) {
  const auto table = open_table(files, name);
  FeatureStream features(*table, FeatureNorm::kStandard, Missing::kError, Control{});
  std::vector<float> block(static_cast<std::size_t>(2 * features.cols()));
  while (features.read(block) > 0) {
  }
  const auto again = open_table(files, name);
  std::vector<std::int64_t> integers(static_cast<std::size_t>(2 * again->cols()));
  while (again->read(std::span(integers)) > 0) {
  }
}

TEST_CASE("table: a damaged file is read or refused, never worse") {
  std::vector<float> values(60);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7);
  std::string text = "a,b,c\n";
  for (int i = 0; i < 30; ++i) text += "1.5,-2e3," + std::to_string(i) + "\n";
  const std::string array = npy<float>({20, 3}, values);
  const std::vector<std::pair<std::string, std::string>> sparse = {
      {"indices.npy", npy<std::int32_t>({4}, {1, 0, 2, 1})},
      {"indptr.npy", npy<std::int64_t>({4}, {0, 1, 3, 4})},
      {"format.npy", npy_file("|S3", {}, "csr")},
      {"shape.npy", npy<std::int64_t>({2}, {3, 3})},
      {"data.npy", npy<float>({4}, {1, 2, 3, 4})}};
  const std::pair<std::string, std::string> inputs[] = {
      {"a.npy", array},
      {"f.npy", npy<float>({20, 3}, values, true)},
      {"a.csv", text},
      {"a.csv.gz", test::gzip(text)},
      {"stored.npz", test::zip({{"x.npy", array}}, false)},
      {"deflated.npz", test::zip({{"x.npy", array}}, true)},
      {"sparse.npz", test::zip(sparse, true)},
      {"sparse_stored.npz", test::zip(sparse, false)}};
  std::mt19937 random(5);
  for (const auto& [name, bytes] : inputs) {
    std::int64_t refused = 0;
    for (int i = 0; i < 400; ++i) {
      test::MemoryFileSystem files;
      test::put_file(files, name, damage(bytes, random));
      try {
        read_through(files, name);
      } catch (const DataError&) {
        ++refused;
      }
    }
    INFO(name);
    CHECK(refused > 50);
  }
}

}  // namespace
}  // namespace ooc
