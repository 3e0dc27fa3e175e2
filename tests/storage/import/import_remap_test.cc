#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <set>

#include "storage/base/errors.h"
#include "storage/dataset/dataset.h"
#include "storage/dataset/dataset_verify.h"
#include "storage/import/edges/remapped_edges.h"
#include "storage/import/importer.h"
#include "tests/support/edit_dataset.h"
#include "tests/support/fake_file_system.h"
#include "tests/support/input_files.h"

namespace ooc {
namespace {

using Catch::Contains;
using test::error_of;
using test::MemoryFileSystem;
using test::npy;
using test::put_file;

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

// Edges in memory; each carries its number, as 8 bytes.
class VectorSource final : public EdgeSource {
 public:
  explicit VectorSource(std::vector<Edge> edges) : edges_(std::move(edges)) {}
  std::optional<std::int64_t> known_edges() const override { return std::nullopt; }
  bool next(std::int64_t max_edges, EdgeBlock& block) override {
    const std::size_t count =
        std::min(static_cast<std::size_t>(max_edges), edges_.size() - next_edge_);
    block.edges.assign(edges_.begin() + static_cast<std::ptrdiff_t>(next_edge_),
                       edges_.begin() + static_cast<std::ptrdiff_t>(next_edge_ + count));
    block.data.resize(count * sizeof(std::uint64_t));
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t number = next_edge_ + i;
      std::memcpy(block.data.data() + i * sizeof(number), &number, sizeof(number));
    }
    next_edge_ += count;
    return count > 0;
  }
  void rewind() override { next_edge_ = 0; }

 private:
  std::vector<Edge> edges_;
  std::size_t next_edge_ = 0;
};

// The ids of its edges; `block` holds those at hand.
IdStream stream_of(VectorSource& source, EdgeBlock& block) {
  return [&]() -> std::span<const std::int64_t> {
    if (!source.next(256 << 10, block)) return {};
    return ids_of(block.edges);
  };
}

// Place by id, as the module promises it.
std::map<std::int64_t, VertexId> places_of(const std::vector<Edge>& edges) {
  std::set<std::int64_t> ids;
  for (const Edge& edge : edges) ids.insert({edge.source, edge.destination});
  std::map<std::int64_t, VertexId> places;
  for (const std::int64_t id : ids) {
    places.emplace_hint(places.end(), id, static_cast<VertexId>(places.size()));
  }
  return places;
}

void check_remapped(const std::vector<Edge>& edges, std::int64_t max_edges) {
  MemoryFileSystem files;
  files.create_directories("s");
  VectorSource source(edges);
  const auto places = places_of(edges);
  {
    EdgeBlock block;
    OriginalIds ids(files, {"s/ids", "", 0}, stream_of(source, block), 0, {});
    REQUIRE(ids.size() == static_cast<std::int64_t>(places.size()));
    std::vector<std::int64_t> all(places.size());
    ids.read(0, all);
    CHECK(std::equal(all.begin(), all.end(), places.begin(),
                     [](std::int64_t id, const auto& place) { return id == place.first; }));
    source.rewind();
    const Control control;
    RemappedEdgeSource remapped(source, "e.npy", ids, sizeof(std::uint64_t), 0, control);
    for (int round = 0; round < 2; ++round) {
      std::size_t edge = 0, wrong = 0;
      for (std::uint64_t number = 0; remapped.next(max_edges, block); ++number) {
        CHECK(block.number == number);
        CHECK((block.edges.size() == static_cast<std::size_t>(max_edges) ||
               edge + block.edges.size() == edges.size()));
        for (std::size_t i = 0; i < block.edges.size(); ++i, ++edge) {
          std::uint64_t carried = 0;
          std::memcpy(&carried, block.data.data() + i * sizeof(carried), sizeof(carried));
          const Edge& given = edges[edge];
          const Edge expected{places.at(given.source), places.at(given.destination)};
          wrong += block.edges[i] != expected || carried != edge;
        }
      }
      CHECK(edge == edges.size());
      CHECK(wrong == 0);
      remapped.rewind();
    }
  }
  CHECK(files.list("s").empty());
}

std::vector<Edge> wild_edges(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Edge> edges(count);
  for (Edge& edge : edges) {
    edge = {static_cast<VertexId>(random()), static_cast<VertexId>(random())};
  }
  return edges;
}

TEST_CASE("remap: ids get the places of their order, as a map gives them") {
  check_remapped({}, 5);
  check_remapped({{kLargest, kLeast}}, 1);
  check_remapped({{-1, -1}}, 10);
  auto edges = wild_edges(400, 1);
  edges.insert(edges.end(), {{kLargest, kLeast}, {0, -1}, {5, 5}, {5, 5}, {kLeast, kLeast}});
  edges.insert(edges.end(), edges.begin(), edges.begin() + 100);
  check_remapped(edges, 7);
  check_remapped(edges, 1000);
}

TEST_CASE("remap: what takes several runs, ranges and blocks is the same") {
  check_remapped(wild_edges(600'000, 2), 100'000);  // ids that occur once
  auto hub = wild_edges(600'000, 3);
  for (std::size_t i = 0; i < hub.size(); ++i) {
    hub[i] = {42, static_cast<VertexId>(i % 1000) * (std::int64_t{1} << 50)};
  }
  check_remapped(hub, 262'144);
}

TEST_CASE("remap: ids are found, and no others") {
  MemoryFileSystem files;
  std::vector<Edge> edges;
  for (std::int64_t i = 0; i < 2000; ++i) edges.push_back({3 * i, -3 * i});
  VectorSource source(edges);
  EdgeBlock block;
  OriginalIds ids(files, {"ids", "", 0}, stream_of(source, block), 0, {});
  REQUIRE(ids.size() == 3999);
  for (const std::int64_t id : {-5997, 0, 3, 1536, 1533, -1539, 5997, -3}) {
    REQUIRE(ids.find(id).has_value());
    CHECK(*ids.find(id) == 1999 + id / 3);
  }
  for (const std::int64_t id : {std::int64_t{-5998}, std::int64_t{1}, std::int64_t{5998}, kLeast,
                                kLargest, std::int64_t{-1537}}) {
    CHECK(!ids.find(id).has_value());
  }
}

constexpr const char* kOutput = "out/g.ooc";

// Vertices that are called 10, 20, ... and -10, -20, ...
ImportOptions put_inputs(FileSystem& files, std::int64_t vertices) {
  files.create_directories("in");
  files.create_directories("out");
  std::vector<std::int64_t> ends, labels, train;
  for (std::int64_t v = 0; v < vertices; ++v) {
    const auto name = [&](std::int64_t place) { return (place % vertices - vertices / 2) * 10; };
    ends.insert(ends.end(), {name(v), name(v * 7 + 3)});
    labels.push_back(v % 4);
    if (v % 3 == 0) train.push_back(name(v));
  }
  put_file(files, "in/edges.npy", npy<std::int64_t>({vertices, 2}, ends));
  put_file(files, "in/labels.npy", npy<std::int64_t>({vertices}, labels));
  put_file(files, "in/train_idx.npy",
           npy<std::int64_t>({static_cast<std::int64_t>(train.size())}, train));
  ImportOptions options;
  options.inputs = discover_inputs(files, "in", {});
  options.block_rows = 16;
  options.remap_ids = true;
  options.rows.sorted = true;
  return options;
}

TEST_CASE("import: remapped ids, labels and splits belong together in every order") {
  for (const VertexOrder order : {VertexOrder::kNatural, VertexOrder::kRandom}) {
    MemoryFileSystem files;
    ImportOptions options = put_inputs(files, 100);
    options.order = order;
    import_dataset(files, options, kOutput, {});
    CHECK(verify_dataset(files, kOutput).faults.empty());
    const Dataset dataset = Dataset::open(files, kOutput, VerifyPolicy::kFirst);
    REQUIRE(dataset.remapped());
    std::vector<std::int64_t> names(100), ids(100);
    std::vector<std::int32_t> labels(100);
    std::vector<std::uint8_t> splits(100);
    dataset.tensor("original_ids")->read_rows(0, 100, names.data());
    dataset.tensor("ids")->read_rows(0, 100, ids.data());
    dataset.tensor("labels")->read_rows(0, 100, labels.data());
    dataset.tensor("splits")->read_rows(0, 100, splits.data());
    for (std::size_t row = 0; row < 100; ++row) {
      const std::int64_t place = names[row] / 10 + 50;
      CHECK(ids[row] == place);
      CHECK(labels[row] == place % 4);
      CHECK(splits[row] == (place % 3 == 0 ? 1 : 0));
    }
  }
}

TEST_CASE("import: messages about remapped splits name ids of the input") {
  MemoryFileSystem files;
  const ImportOptions options = put_inputs(files, 100);
  const auto error = [&](const std::vector<std::int64_t>& train) {
    put_file(files, "in/train_idx.npy",
             npy<std::int64_t>({static_cast<std::int64_t>(train.size())}, train));
    return error_of<DataError>([&] { import_dataset(files, options, kOutput, {}); });
  };
  CHECK_THAT(error({-20, 5}), Contains("vertex id 5 is in no edge, in/train_idx.npy, row 1"));
  CHECK_THAT(error({-20, -20}), Contains("vertex -20 is in the train split twice"));
}

TEST_CASE("import: whichever write fails, no remapped dataset is left") {
  int failures = 0;
  for (std::int64_t write = 1;; ++write, ++failures) {
    MemoryFileSystem base;
    ImportOptions options = put_inputs(base, 100);
    options.order = VertexOrder::kRandom;
    test::FaultyFileSystem files(base);
    files.faults.first_failing_write = write;
    if (error_of<IoError>([&] { import_dataset(files, options, kOutput, {}); }) == "no error") {
      break;
    }
    REQUIRE(base.list("out").empty());
  }
  CHECK(failures > 10);
}

TEST_CASE("import: a dataset that needs no remapping has no original ids") {
  MemoryFileSystem files;
  put_file(files, "e.npy", npy<std::int64_t>({2, 2}, {0, 1, 1, 2}));
  ImportOptions options;
  options.inputs.edges = "e.npy";
  import_dataset(files, options, "g.ooc", {});
  const Dataset dataset = Dataset::open(files, "g.ooc", VerifyPolicy::kFirst);
  CHECK(!dataset.remapped());
  CHECK(dataset.tensor("original_ids") == nullptr);
}

TEST_CASE("verify: original ids that do not ascend, and a dataset that lacks them") {
  MemoryFileSystem files;
  const ImportOptions options = put_inputs(files, 100);
  const auto fault = [&] {
    const auto faults = verify_dataset(files, kOutput).faults;
    return faults.empty() ? "none" : faults.front();
  };
  import_dataset(files, options, kOutput, {});
  CHECK(fault() == "none");
  std::vector<std::int64_t> names(100, 7);
  test::replace_tensor<std::int64_t>(files, kOutput, "original_ids", 1, names);
  CHECK_THAT(fault(), Contains("original ids 7 and 7 do not ascend, out/g.ooc/original_ids"));
  test::edit_manifest(files, kOutput,
                      [](Manifest& manifest) { manifest.files.erase("original_ids"); });
  CHECK_THAT(fault(), Contains("out/g.ooc/original_ids"));
}

}  // namespace
}  // namespace ooc
