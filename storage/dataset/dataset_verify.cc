#include "storage/dataset/dataset_verify.h"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <functional>
#include <mutex>
#include <utility>

#include "storage/base/checked_json.h"
#include "storage/base/errors.h"
#include "storage/base/utf8.h"
#include "storage/dataset/dataset.h"
#include "storage/dataset/original_names.h"

namespace ooc {
namespace {

constexpr std::uint64_t kBatchBytes = 256 << 20;  // checked between two looks at the control
constexpr std::uint64_t kBatchChunks = 1024;
constexpr std::int64_t kBatchRows = 1 << 16;

// SplitMix64's finaliser: every bit of the result depends on every bit of `value`.
std::uint64_t mix(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15;

// Summed over edges: a fingerprint of the multiset of them, whatever their order. `data` is the
// hash of what the edge carries.
std::uint64_t edge_hash(VertexId source, VertexId destination, std::uint64_t data) {
  return mix(mix(static_cast<std::uint64_t>(source) + kStep) +
             static_cast<std::uint64_t>(destination) + data);
}

std::uint64_t data_hash(const TileView& tile, std::size_t edge, const EdgeData& data) {
  std::uint64_t hash = 0;
  const auto add = [&](std::uint64_t value) { hash = mix(hash + kStep + value); };
  if (data.weights) add(std::bit_cast<std::uint32_t>(tile.weights[edge]));
  if (data.types) add(tile.types[edge]);
  const auto cols = static_cast<std::size_t>(data.feature_cols);
  for (std::size_t col = 0; col < cols; ++col) {
    add(std::bit_cast<std::uint32_t>(tile.features[edge * cols + col]));
  }
  return hash;
}

void add_one(std::int32_t& count) {
  std::atomic_ref<std::int32_t>(count).fetch_add(1, std::memory_order_relaxed);
}

class Verifier {
 public:
  Verifier(FileSystem& files, const std::string& path, const Control& control)
      : files_(files), path_(path), control_(control) {}

  VerifyReport run() {
    if (!collect([&] { read_manifest(); })) return std::move(report_);
    find_foreign_files();
    check_edges("edges.in", Direction::kIn);
    if (!manifest_.symmetric) check_edges("edges.out", Direction::kOut);
    for (const TensorSpec& spec : tensor_specs(manifest_)) {
      if (spec.required || manifest_.files.contains(spec.name)) check_tensor(spec);
    }
    if (report_.faults.empty()) collect([&] { check_meaning(); });
    return std::move(report_);
  }

 private:
  std::string file(const std::string& name) const { return join_path(path_, name); }

  // Runs a check; a DataError of it is a fault, and the result false.
  bool collect(const std::function<void()>& check) {
    try {
      check();
      return true;
    } catch (const DataError& error) {
      const std::lock_guard lock(mutex_);
      if (report_.faults.size() < kMaxFaults) report_.faults.emplace_back(error.what());
      return false;
    }
  }

  bool full() {
    const std::lock_guard lock(mutex_);
    return report_.faults.size() >= kMaxFaults;
  }

  void read_manifest() {
    const std::vector<std::byte> bytes = read_file(files_, file(kManifestFile));
    const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    manifest_ = manifest_from_text(text, file(kManifestFile));
    if (!is_canonical_json(text)) {
      throw DataError("manifest with other blanks than were written", file(kManifestFile),
                      kImportAgain);
    }
    report_.vertices = manifest_.edges.vertices;
    report_.edges = manifest_.edges.edges;
    const auto elements = static_cast<std::size_t>(report_.vertices * kDegreeColumns);
    degrees_.assign(elements, 0);
  }

  void find_foreign_files() {
    std::vector<std::string> known{kManifestFile, "edges.in"};
    if (!manifest_.symmetric) known.emplace_back("edges.out");
    for (const TensorSpec& spec : tensor_specs(manifest_)) known.push_back(spec.name);
    const auto is_known = [&](const std::string& name) {
      return std::find(known.begin(), known.end(), name) != known.end();
    };
    for (const auto& [name, info] : manifest_.files) {
      if (is_known(name)) continue;
      collect([&, n = name] {
        throw DataError(fmt::format("manifest names a file that no dataset has, '{}'", n),
                        file(kManifestFile), kImportAgain);
      });
    }
    for (const std::string& name : files_.list(path_)) {
      if (!is_known(name) || (name != kManifestFile && !manifest_.files.contains(name))) {
        report_.foreign_files.push_back(name);
      }
    }
  }

  // The length first: that says more than what is missing at the end.
  void check_length(const std::string& name) {
    const auto found = manifest_.files.find(name);
    if (found == manifest_.files.end()) {
      throw DataError("manifest without a file that every such dataset has", file(name),
                      kImportAgain);
    }
    const std::uint64_t bytes = files_.open(file(name))->size();
    if (bytes != found->second.bytes) {
      throw DataError(
          fmt::format("{}: the file has {} bytes, the manifest says {}",
                      bytes < found->second.bytes ? "truncated" : "bytes after the end", bytes,
                      found->second.bytes),
          fmt::format("{}, offset {}", file(name), std::min(bytes, found->second.bytes)),
          kImportAgain);
    }
  }

  void check_info(const std::string& name, const ChunkFileReader& reader) {
    if (reader.info() != manifest_.files.at(name)) {
      throw DataError("file does not belong to this dataset's manifest", file(name), kImportAgain);
    }
  }

  // check(chunk) for every chunk, in parallel, as long as there is room for faults; then the gaps.
  void check_chunks(const std::string& name, const ChunkFileReader& reader,
                    const std::function<void(std::uint64_t)>& check) {
    const std::string phase = "checking " + name;
    const std::uint64_t count = reader.shape().chunk_count;
    for (std::uint64_t begin = 0; begin < count && !full();) {
      control_.step(phase, static_cast<double>(begin), static_cast<double>(count));
      std::uint64_t end = begin, bytes = 0;
      while (end < count && bytes < kBatchBytes && end - begin < kBatchChunks) {
        bytes += reader.entry(end++).bytes;
      }
      tbb::parallel_for(begin, end, [&](std::uint64_t chunk) { collect([&] { check(chunk); }); });
      begin = end;
    }
    collect([&] { reader.verify_gaps(); });
  }

  // Checksums, structure and the number of edges, and on the way what degrees and the other
  // direction are compared with.
  void check_edges(const std::string& name, Direction direction) {
    collect([&] {
      check_length(name);
      const EdgeFile edges(files_, file(name), VerifyPolicy::kFirst, manifest_.edges);
      check_info(name, edges.file());
      std::atomic<std::uint64_t> items = 0;
      check_chunks(name, edges.file(), [&](std::uint64_t chunk) {
        items += edges.file().entry(chunk).items;
        count_edges(edges, static_cast<std::int64_t>(chunk), direction);
      });
      if (items != static_cast<std::uint64_t>(manifest_.edges.edges)) {
        throw DataError(fmt::format("chunks of {} edges together, the manifest says {}",
                                    items.load(), manifest_.edges.edges),
                        file(name), kImportAgain);
      }
    });
  }

  void count_edges(const EdgeFile& file, std::int64_t chunk, Direction direction) {
    const EdgeLayout& layout = file.layout();
    const std::int64_t span = chunk / layout.panel_count(), panel = chunk % layout.panel_count();
    std::uint64_t as_named = 0, reversed = 0;
    for (const PanelTile& entry : file.tiles(span, panel)) {
      check_types(file, chunk, entry.tile);
      std::size_t edge = 0;
      for_each_edge(entry.tile, [&](std::uint16_t local_row, std::uint16_t local_source) {
        const VertexId source = span * layout.span_rows + local_source;
        const VertexId row = entry.block * layout.block_rows + local_row;
        const auto degrees = degrees_.begin() + row * kDegreeColumns;
        if (direction == Direction::kIn) add_one(degrees[source == row ? kSelfLoops : kInDegree]);
        // A symmetric graph's edges are their own reverse.
        const bool out = direction == Direction::kOut || manifest_.symmetric;
        if (out && source != row) add_one(degrees[kOutDegree]);
        const std::uint64_t data = data_hash(entry.tile, edge++, layout.data);
        as_named += edge_hash(source, row, data);
        if (out) reversed += edge_hash(row, source, data);
      });
    }
    if (direction == Direction::kIn) hash_in_ += as_named;
    hash_out_ += reversed;
  }

  void check_types(const EdgeFile& file, std::int64_t chunk, const TileView& tile) const {
    if (!file.layout().data.types) return;
    const auto largest = *std::max_element(tile.types, tile.types + tile.edge_count);
    if (largest < manifest_.edge_types) return;
    throw DataError(fmt::format("edge chunk {}: an edge of type {}, the manifest says {} types",
                                chunk, largest, manifest_.edge_types),
                    fmt::format("{}, offset {}", file.file().path(),
                                file.file().entry(static_cast<std::uint64_t>(chunk)).offset),
                    kImportAgain);
  }

  void check_tensor(const TensorSpec& spec) {
    collect([&] {
      check_length(spec.name);
      const VertexTensorFile tensor(files_, file(spec.name), VerifyPolicy::kFirst, spec.dtype,
                                    spec.rows, manifest_.edges.block_rows, spec.cols);
      check_info(spec.name, tensor.file());
      check_chunks(spec.name, tensor.file(), [&](std::uint64_t chunk) {
        tensor.file().chunk(chunk);
        tensor.check_chunk(chunk);
      });
    });
  }

  // What needs several files, or a look at every value.
  void check_meaning() {
    if (hash_in_ != hash_out_) {
      throw DataError("edges.in and edges.out hold different edges", path_, kImportAgain);
    }
    const Dataset dataset = Dataset::open(files_, path_, VerifyPolicy::kFirst);
    std::vector<bool> seen(static_cast<std::size_t>(dataset.vertices()), false);
    std::vector<std::int32_t> degrees(kBatchRows * kDegreeColumns);
    std::vector<std::int64_t> ids(kBatchRows);
    for (std::int64_t begin = 0; begin < dataset.vertices(); begin += kBatchRows) {
      control_.step("checking ids and degrees", static_cast<double>(begin),
                    static_cast<double>(dataset.vertices()));
      const std::int64_t count = std::min(kBatchRows, dataset.vertices() - begin);
      dataset.tensor("degrees")->read_rows(begin, count, degrees.data());
      const auto counted = degrees_.begin() + begin * kDegreeColumns;
      const auto wrong = std::mismatch(counted, counted + count * kDegreeColumns, degrees.begin());
      if (wrong.first != counted + count * kDegreeColumns) {
        refuse("degrees disagree with the edges", "degrees",
               (wrong.first - degrees_.begin()) / kDegreeColumns);
      }
      dataset.tensor("ids")->read_rows(begin, count, ids.data());
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t id = ids[static_cast<std::size_t>(i)];
        if (id < 0 || id >= dataset.vertices() || seen[static_cast<std::size_t>(id)]) {
          refuse(fmt::format("ids are no permutation (id {})", id), "ids", begin + i);
        }
        seen[static_cast<std::size_t>(id)] = true;
      }
    }
    if (manifest_.remapped == IdKind::kIntegers) check_original_ids(dataset);
    if (manifest_.remapped == IdKind::kStrings) check_original_names(dataset);
    control_.step("checking labels", 0, 1);
    dataset.check_labels();
  }

  // Original ids ascend where vertices are in the order of `ids`.
  void check_original_ids(const Dataset& dataset) {
    std::vector<std::int64_t> by_id(static_cast<std::size_t>(dataset.vertices()));
    std::vector<std::int64_t> ids(kBatchRows), originals(kBatchRows);
    for (std::int64_t begin = 0; begin < dataset.vertices(); begin += kBatchRows) {
      control_.step("checking original ids", static_cast<double>(begin),
                    static_cast<double>(dataset.vertices()));
      const std::int64_t count = std::min(kBatchRows, dataset.vertices() - begin);
      dataset.tensor("ids")->read_rows(begin, count, ids.data());
      dataset.tensor("original_ids")->read_rows(begin, count, originals.data());
      for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
        by_id[static_cast<std::size_t>(ids[i])] = originals[i];
      }
    }
    const auto wrong = std::adjacent_find(by_id.begin(), by_id.end(), std::greater_equal<>());
    if (wrong == by_id.end()) return;
    throw DataError(fmt::format("original ids {} and {} do not ascend", wrong[0], wrong[1]),
                    file("original_ids"), kImportAgain);
  }

  // The same where they are strings; and what they consist of.
  void check_original_names(const Dataset& dataset) {
    const OriginalNames names(dataset);
    std::vector<std::int64_t> rows(static_cast<std::size_t>(dataset.vertices())), ids(kBatchRows);
    for (std::int64_t begin = 0; begin < dataset.vertices(); begin += kBatchRows) {
      const std::int64_t count = std::min(kBatchRows, dataset.vertices() - begin);
      dataset.tensor("ids")->read_rows(begin, count, ids.data());
      for (std::int64_t i = 0; i < count; ++i) {
        rows[static_cast<std::size_t>(ids[static_cast<std::size_t>(i)])] = begin + i;
      }
    }
    std::string before, buffer;
    for (std::size_t id = 0; id < rows.size(); ++id) {
      if (id % kBatchRows == 0) {
        control_.step("checking original ids", static_cast<double>(id),
                      static_cast<double>(rows.size()));
      }
      const std::string_view name = names.of(rows[id], buffer);
      if (!is_plain_utf8(name)) {
        refuse("an original id that is no UTF-8 text", "original_id_bytes", rows[id]);
      }
      if (name <= before) refuse("original ids do not ascend", "original_id_bytes", rows[id]);
      before = name;
    }
    if (names.end() != manifest_.id_bytes) {
      throw DataError("original ids end before their bytes do", file("original_id_ends"),
                      kImportAgain);
    }
  }

  [[noreturn]] void refuse(std::string_view what, const std::string& name, std::int64_t row) {
    throw DataError(what, fmt::format("{}, row {}", file(name), row), kImportAgain);
  }

  FileSystem& files_;
  const std::string& path_;
  const Control& control_;
  Manifest manifest_;
  VerifyReport report_;
  std::mutex mutex_;  // of the report, while chunks are checked
  std::vector<std::int32_t> degrees_;
  std::atomic<std::uint64_t> hash_in_ = 0, hash_out_ = 0;
};

}  // namespace

void Dataset::verify(const Control& control) const {
  const VerifyReport report = verify_dataset(*files_, path_, control);
  if (!report.faults.empty()) throw DataError(report.faults.front(), "", "");
}

VerifyReport verify_dataset(FileSystem& files, const std::string& path, const Control& control) {
  check_is_dataset(files, path);
  return Verifier(files, path, control).run();
}

}  // namespace ooc
