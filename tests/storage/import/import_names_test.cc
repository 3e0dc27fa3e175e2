#include <fmt/format.h>
#include <tbb/global_control.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <random>
#include <set>

#include "storage/base/byte_size.h"
#include "storage/base/errors.h"
#include "storage/base/utf8.h"
#include "storage/dataset/dataset_verify.h"
#include "storage/dataset/original_names.h"
#include "storage/import/ids/id_table.h"
#include "storage/import/importer.h"
#include "tests/support/edit_dataset.h"
#include "tests/support/fake_file_system.h"
#include "tests/support/input_files.h"

namespace ooc {
namespace {

using Catch::Contains;
using test::error_of;
using test::MemoryFileSystem;
using test::put_file;

constexpr std::int64_t kPlenty = std::int64_t{1} << 40;
constexpr const char* kOutput = "out/g.ooc";

std::optional<StringIdFound> look(std::string_view text) {
  MemoryFileSystem files;
  put_file(files, "e.csv", text);
  return find_string_id(open_byte_source(files, "e.csv"), {}, NumberKind::kIntegers, {});
}

// Reads `text` for its ids, then for dense ones.
std::vector<std::int64_t> read_ids(std::string_view text, StringIds& ids,
                                   const std::string& name = "e.csv") {
  MemoryFileSystem files;
  put_file(files, name, text);
  const auto table =
      open_id_table(open_byte_source(files, name), name, {}, HeaderRule::kNames, ids);
  if (!ids.finished()) {
    for (const std::int64_t value : test::read_all<std::int64_t>(*table)) CHECK(value == 0);
    ids.finish();
    table->rewind();
  }
  return test::read_all<std::int64_t>(*table);
}

std::vector<std::string> ids_of(std::string_view text) {
  StringIds ids(kPlenty);
  std::vector<std::string> found;
  for (const std::int64_t id : read_ids(text, ids)) found.emplace_back(ids[id]);
  return found;
}

std::string refusal_of(std::string_view text) {
  return error_of<DataError>([&] { ids_of(text); });
}

using Names = std::vector<std::string>;

TEST_CASE("string_ids: dense ids follow the order of bytes, as a set gives it") {
  std::mt19937_64 random(4);
  std::set<std::string> expected;
  StringIds ids(kPlenty);
  for (int i = 0; i < 30'000; ++i) {
    std::string id(1 + random() % 9, ' ');
    for (char& c : id) c = static_cast<char>(random() % 3 == 0 ? 0xc3 : 'a' + random() % 4);
    expected.insert(id);
    ids.add(id);
  }
  ids.finish();
  REQUIRE(ids.size() == static_cast<std::int64_t>(expected.size()));
  std::int64_t place = 0, bytes = 0, wrong = 0;
  for (const std::string& id : expected) {
    wrong += ids[place] != id || ids.find(id) != place;
    wrong += ids.find(id + "!").has_value();
    bytes += static_cast<std::int64_t>(id.size());
    ++place;
  }
  CHECK(wrong == 0);
  CHECK(ids.text_bytes() == bytes);
  StringIds none(kPlenty);
  none.finish();
  CHECK(none.size() == 0);
  CHECK(!none.find("a"));
}

TEST_CASE("string_ids: what does not fit is estimated, and that much is enough") {
  const auto add_all = [](StringIds& ids) {
    for (int i = 0; i < 400'000; ++i) {  // 300,000 of them
      ids.add(fmt::format("a vertex of some length {}", i % 300'000));
    }
  };
  StringIds enough(kPlenty);
  add_all(enough);
  CHECK(enough.complete());
  for (const std::int64_t given : {std::int64_t{0}, std::int64_t{8} << 20}) {
    StringIds little(given);
    add_all(little);
    REQUIRE(!little.complete());
    CHECK(little.memory_bytes() > given);
    CHECK(little.memory_bytes() >= enough.memory_bytes());
    CHECK(little.memory_bytes() < enough.memory_bytes() * 11 / 10);
    StringIds again(little.memory_bytes());
    add_all(again);
    CHECK(again.complete());
  }
}

TEST_CASE("id_table: quotes, separators, comments and headers") {
  CHECK(ids_of("a,b\n") == Names{"a", "b"});
  CHECK(ids_of("\"Smith, John\",\"say \"\"hi\"\"\"\r\n") == Names{"Smith, John", "say \"hi\""});
  CHECK(ids_of("#\n a b , c\t\n\n# x\n#d#e,\" f \"\n") == Names{"a b", "c", "#d#e", " f "});
  CHECK(ids_of("New York\tLos Angeles\n") == Names{"New York", "Los Angeles"});
  CHECK(ids_of("a   b\n\"c d\" \te\n") == Names{"a", "b", "c d", "e"});
  CHECK(ids_of("\"a,b\";c\n") == Names{"a,b", "c"});
  CHECK(ids_of("Source,Target\nid,x\n") == Names{"id", "x"});
  CHECK(ids_of("alice,bob\nid,x\n") == Names{"alice", "bob", "id", "x"});
  CHECK(ids_of("\xEF\xBB\xBFÉmile,日本\n7,07\n") == Names{"Émile", "日本", "7", "07"});
  CHECK(ids_of("5\" disk,x\n") == Names{"5\" disk", "x"});
  CHECK(ids_of("\"a;\"\";\", b\n") == Names{"a;\";", "b"});
}

TEST_CASE("id_table: which first lines are headers") {
  const auto first_of = [](std::string_view text, const std::string& columns) {
    MemoryFileSystem files;
    put_file(files, "e.csv", text);
    StringIds ids(kPlenty);
    TextColumns chosen;
    chosen.chosen = columns;
    const auto table =
        open_id_table(open_byte_source(files, "e.csv"), "e.csv", chosen, HeaderRule::kNames, ids);
    test::read_all<std::int64_t>(*table);
    ids.finish();
    return std::string(ids[0]);
  };
  CHECK(first_of("src_account,dst_account\nx,y\n", "") == "x");
  CHECK(first_of("fromNode toNode\nx y\n", "") == "x");
  CHECK(first_of("dst_account,src_account\nx,y\n", "") == "dst_account");
  CHECK(first_of("account_1,account_2\nx,y\n", "") == "account_1");
  CHECK(first_of("accountId\nx\n", "") == "x");
  CHECK(first_of("a,b,c\nx,1,2\n", "1") == "x");  // numbers follow
  CHECK(first_of("a,b,c\nx,y,z\n", "1") == "a");
  CHECK(first_of("a,b,c\nx,y,z\n", "a") == "x");  // by its name
  CHECK(first_of("a,1,c\nx,2,z\n", "1") == "a");
}

TEST_CASE("id_table: what is no id names file, line and field") {
  CHECK_THAT(refusal_of("a,b\nc,\n"), Contains("an empty id, e.csv, line 2, field 2"));
  CHECK_THAT(refusal_of("a,b\n\"\",c\n"), Contains("an empty id, e.csv, line 2, field 1"));
  CHECK_THAT(refusal_of("a,b\n\nc\n"),
             Contains("1 fields where the first line has 2, e.csv, line 3"));
  CHECK_THAT(refusal_of("a,b\nc,\"d\n"),
             Contains("quote that is not closed on its line, e.csv, line 2"));
  CHECK_THAT(refusal_of("source,target\n\"\nx,y\n"),
             Contains("is not closed on its line, e.csv, line 2"));
  CHECK_THAT(refusal_of("a,b\n\"c\"d,e\n"), Contains("text after a closing double quote"));
  CHECK_THAT(refusal_of("a,b\x01\n"), Contains("no UTF-8, or has control characters"));
  CHECK_THAT(refusal_of("a,b\xff\n"), Contains("line 1, field 2; convert"));
  CHECK_THAT(refusal_of("a," + std::string(65'536, 'x')), Contains("an id of 65536 bytes"));
  CHECK(ids_of("a," + std::string(65'535, 'x')).back().size() == 65'535);
  StringIds ids(kPlenty);
  read_ids("a,b\n", ids);
  CHECK(read_ids("id\nb\na\n", ids, "t.txt") == std::vector<std::int64_t>{1, 0});
  CHECK_THAT(error_of<DataError>([&] { read_ids("b\nc\n", ids, "t.txt"); }),
             Contains("vertex id 'c' is in no edge, t.txt, line 2"));
}

TEST_CASE("id_table: ids are strings as soon as one of them is no integer") {
  for (const char* const integers :
       {"", "1,2\n", "from,to\n1,2\n", "alice,bob\n1,2\n", "\"1\",-2 # x\n", "source,target\n",
        "1,9223372036854775807\n", "1.0,2e3\n"}) {
    INFO(integers);
    CHECK(!look(integers));
  }
  for (const char* const strings : {"a,b\n", "a,b\nc,d\n", "1,b\n", "x,y\n1,b\n"}) {
    INFO(strings);
    REQUIRE(look(strings));
    CHECK(!look(strings)->after_integers);
  }
  const auto late = look("1,2\n3,4\n5,6a\n");
  REQUIRE(late);
  CHECK(late->after_integers);
  CHECK(late->line == 3);
  CHECK(late->field == "6a");
  CHECK(look("1,18446744073709551615\n"));
}

TEST_CASE("utf8: what is none") {
  for (const char* const good : {"", "a", "é", "日", "😀", "\xf4\x8f\xbf\xbf", "\xc2\xa0"}) {
    CHECK(is_plain_utf8(good));
  }
  for (const char* const bad :
       {"\n", "\x7f", "\x80", "\xc3", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80",
        "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\xc3(", "\xc2\x85", "\xe6\x97"}) {
    CHECK(!is_plain_utf8(bad));
  }
  CHECK(!is_plain_utf8(std::string_view("\0", 1)));
}

std::string name_of(std::int64_t place) { return fmt::format("v{:03}, é", place); }

// Vertices by name; labels and a split say which is which.
ImportOptions put_inputs(FileSystem& files, std::int64_t vertices) {
  files.create_directories("in");
  files.create_directories("out");
  std::string edges = "from;to\n", labels, train;
  for (std::int64_t v = 0; v < vertices; ++v) {
    edges += fmt::format("{};\"{}\"\n", name_of(v), name_of((v * 7 + 3) % vertices));
    labels += fmt::format("{}\n", v % 4);
    if (v % 3 == 0) train += fmt::format("\"{}\"\n", name_of(v));
  }
  put_file(files, "in/edges.csv.gz", test::gzip(edges));
  put_file(files, "in/labels.csv", labels);
  put_file(files, "in/train_idx.txt", train);
  ImportOptions options;
  options.inputs = discover_inputs(files, "in", {});
  options.block_rows = 16;
  options.remap_ids = true;
  options.rows.sorted = true;
  return options;
}

std::string fault(FileSystem& files) {
  const auto faults = verify_dataset(files, kOutput).faults;
  return faults.empty() ? "none" : faults.front();
}

TEST_CASE("import: names, labels and splits belong together in every order") {
  for (const VertexOrder order :
       {VertexOrder::kNatural, VertexOrder::kRandom, VertexOrder::kDegree}) {
    MemoryFileSystem files;
    ImportOptions options = put_inputs(files, 100);
    options.order = order;
    import_dataset(files, options, kOutput, {});
    CHECK(fault(files) == "none");
    const Dataset dataset = Dataset::open(files, kOutput, VerifyPolicy::kFirst);
    REQUIRE(dataset.manifest().remapped == IdKind::kStrings);
    const OriginalNames names(dataset);
    std::vector<std::int64_t> ids(100);
    std::vector<std::int32_t> labels(100);
    std::vector<std::uint8_t> splits(100);
    dataset.tensor("ids")->read_rows(0, 100, ids.data());
    dataset.tensor("labels")->read_rows(0, 100, labels.data());
    dataset.tensor("splits")->read_rows(0, 100, splits.data());
    std::string buffer;
    for (std::size_t row = 0; row < 100; ++row) {
      const std::int64_t place = ids[row];
      CHECK(names.of(static_cast<std::int64_t>(row), buffer) == name_of(place));
      CHECK(labels[row] == place % 4);
      CHECK(splits[row] == (place % 3 == 0 ? 1 : 0));
    }
  }
}

TEST_CASE("import: the same names give the same bytes, whatever the memory and the threads") {
  const auto import = [](MemoryFileSystem& files, std::int64_t memory, bool alone) {
    const tbb::global_control threads(tbb::global_control::max_allowed_parallelism, alone ? 1 : 4);
    ImportOptions options = put_inputs(files, 3000);
    options.memory_bytes = memory;
    options.order = VertexOrder::kBalanced;
    import_dataset(files, options, kOutput, {});
  };
  MemoryFileSystem little, much;
  import(little, std::int64_t{200} << 20, true);
  import(much, std::int64_t{4} << 30, false);
  const auto names = little.list(kOutput);
  REQUIRE(names == much.list(kOutput));
  for (const std::string& name : names) {
    CHECK(read_file(little, join_path(kOutput, name)) == read_file(much, join_path(kOutput, name)));
  }
}

TEST_CASE("import: messages about lists of names") {
  MemoryFileSystem files;
  ImportOptions options = put_inputs(files, 100);
  const auto error = [&](std::string_view train) {
    put_file(files, "in/train_idx.txt", train);
    return error_of<DataError>([&] { import_dataset(files, options, kOutput, {}); });
  };
  CHECK_THAT(error("\"v001, é\"\nv2\n"), Contains("1 fields") || Contains("'v2' is in no edge"));
  CHECK_THAT(error("\"v001, é\"\n\"v001, é\"\n"),
             Contains("vertex 'v001, é' is in the train split twice, in/train_idx.txt, line 2"));
  put_file(files, "in/t.npy", test::npy<std::int64_t>({1}, {0}));
  options.inputs.train = "in/t.npy";
  CHECK_THAT(error_of<DataError>([&] { import_dataset(files, options, kOutput, {}); }),
             Contains("numbers where other files' ids are strings, in/t.npy"));
}

TEST_CASE("import: strings among integers, and a first line like a header, are worth a warning") {
  MemoryFileSystem files;
  ImportOptions options;
  options.inputs.edges = "e.csv";
  options.remap_ids = true;
  options.force = true;
  const auto warnings = [&](std::string_view edges) {
    put_file(files, "e.csv", edges);
    std::string all;
    for (const std::string& one : import_dataset(files, options, "g.ooc", {}).warnings) all += one;
    return all;
  };
  CHECK_THAT(warnings("1,2\n2,3x\n2,1\n"), Contains("'3x' in line 2 of e.csv is no integer"));
  CHECK_THAT(warnings("payer,payee\na,b\nb,a\n"), Contains("if it is a header, take it out"));
  CHECK(warnings("a,b\nb,a\n").empty());
}

TEST_CASE("import: whichever write fails, no dataset of names is left") {
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

TEST_CASE("verify: names that do not ascend, are no text, or end elsewhere") {
  MemoryFileSystem files;
  import_dataset(files, put_inputs(files, 100), kOutput, {});
  REQUIRE(fault(files) == "none");
  const auto with_names = [&](const std::function<void(std::string&)>& edit_bytes,
                              const std::function<void(std::vector<std::int64_t>&)>& edit_ends) {
    std::vector<std::int64_t> ends(100);
    std::string bytes;
    std::int64_t block_rows = 0;
    {
      const Dataset dataset = Dataset::open(files, kOutput, VerifyPolicy::kFirst);
      dataset.tensor("original_id_ends")->read_rows(0, 100, ends.data());
      bytes.resize(static_cast<std::size_t>(dataset.manifest().id_bytes));
      block_rows = dataset.manifest().edges.block_rows;
      dataset.tensor("original_id_bytes")
          ->read_rows(0, static_cast<std::int64_t>(bytes.size()), bytes.data());
    }
    const std::string kept = bytes;
    const auto kept_ends = ends;
    const auto put = [&] {
      test::replace_tensor<std::int64_t>(files, kOutput, "original_id_ends", 1, ends);
      test::edit_manifest(files, kOutput, [&](Manifest& manifest) {
        const auto size = static_cast<std::int64_t>(bytes.size());
        VertexTensorWriter writer(files, join_path(kOutput, "original_id_bytes"), DType::kU8,
                                  {size, 1, block_rows});
        writer.append_rows(bytes.data(), size);
        manifest.files["original_id_bytes"] = writer.finish();
        manifest.id_bytes = size;
      });
    };
    edit_bytes(bytes);
    edit_ends(ends);
    put();
    const std::string found = fault(files);
    bytes = kept;
    ends = kept_ends;
    put();
    CHECK(fault(files) == "none");
    return found;
  };
  const auto same = [](auto&) {};
  CHECK_THAT(with_names([](std::string& bytes) { bytes[0] = 'w'; }, same),
             Contains("original ids do not ascend, out/g.ooc/original_id_bytes, row 1"));
  CHECK_THAT(with_names([](std::string& bytes) { bytes[0] = '\n'; }, same),
             Contains("no UTF-8 text, out/g.ooc/original_id_bytes, row 0"));
  CHECK_THAT(with_names([](std::string& bytes) { bytes += 'x'; }, same),
             Contains("end before their bytes do"));
  CHECK_THAT(with_names(same, [](auto& ends) { ends[5] = ends[4]; }),
             Contains("empty or beyond the others, out/g.ooc/original_id_ends, row 5"));
  CHECK_THAT(with_names(same, [](auto& ends) { ends[99] += 1; }), Contains("row 99"));
  test::edit_manifest(files, kOutput, [](Manifest& m) { m.files.erase("original_id_ends"); });
  CHECK_THAT(fault(files), Contains("original_id_ends"));
}

}  // namespace
}  // namespace ooc
