#include "storage/batches/batches_verify.h"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <functional>
#include <mutex>

#include "storage/base/errors.h"
#include "storage/batches/batch_file.h"
#include "storage/dataset/dataset_verify.h"

namespace ooc {
namespace {

constexpr std::uint64_t kBytesAtOnce = 256 << 20;  // checked between two looks at the control
constexpr std::uint64_t kChunksAtOnce = 1024;

class Verifier {
 public:
  Verifier(FileSystem& files, const std::string& path, const Control& control)
      : files_(files), path_(path), control_(control) {}

  BatchesVerifyReport run() {
    collect([&] {
      check_manifest();
      const BatchFile file = BatchFile::open(files_, path_, VerifyPolicy::kAlways);
      report_.batches = file.batches();
      report_.vertices = file.manifest().vertices;
      report_.edges = file.manifest().edges;
      check_batches(file);
      collect([&] { file.file().verify_gaps(); });
      if (report_.faults.empty()) check_sums(file);
    });
    for (const std::string& name : files_.list(path_)) {
      if (name != kManifestFile && name != kBatchesFile) report_.foreign_files.push_back(name);
    }
    return std::move(report_);
  }

 private:
  // Runs a check; a DataError of it is a fault.
  void collect(const std::function<void()>& check) {
    try {
      check();
    } catch (const DataError& error) {
      const std::lock_guard lock(mutex_);
      if (report_.faults.size() < kMaxFaults) report_.faults.emplace_back(error.what());
    }
  }

  // That the text is what is written of all that was read: it has nothing else.
  void check_manifest() {
    const std::string path = join_path(path_, kManifestFile);
    const std::vector<std::byte> bytes = read_file(files_, path);
    const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (to_text(batches_manifest_from_text(text, path)) != text) {
      throw DataError("manifest with other members or blanks than are written", path, kSampleAgain);
    }
  }

  void check_batches(const BatchFile& file) {
    const auto count = static_cast<std::uint64_t>(file.batches());
    for (std::uint64_t begin = 0; begin < count && report_.faults.size() < kMaxFaults;) {
      control_.step("checking batches", static_cast<double>(begin), static_cast<double>(count));
      std::uint64_t end = begin, bytes = 0;
      while (end < count && bytes < kBytesAtOnce && end - begin < kChunksAtOnce) {
        bytes += file.file().entry(end++).bytes;
      }
      tbb::parallel_for(begin, end, [&](std::uint64_t chunk) {
        collect([&] {
          const BatchView batch =
              file.view(static_cast<std::int64_t>(chunk), file.file().chunk(chunk));
          if (file.file().entry(chunk).items !=
              static_cast<std::uint64_t>(batch.level_rows.back())) {
            throw DataError(fmt::format("batch {}: the index has another count of vertices", chunk),
                            file.file().path(), kSampleAgain);
          }
          add(file, static_cast<std::int64_t>(chunk), batch);
          file.file().release(chunk);
        });
      });
      begin = end;
    }
  }

  void add(const BatchFile& file, std::int64_t batch, const BatchView& view) {
    const std::lock_guard lock(mutex_);
    vertices_ += view.level_rows.back();
    edges_ += static_cast<std::int64_t>(view.edges.size());
    seeds_.resize(file.manifest().sections.size());
    seeds_[file.manifest().section_of(batch)] += view.level_rows.front();
  }

  void check_sums(const BatchFile& file) const {
    const BatchesManifest& manifest = file.manifest();
    bool same = vertices_ == manifest.vertices && edges_ == manifest.edges;
    for (std::size_t i = 0; i < manifest.sections.size(); ++i) {
      same = same && seeds_[i] == manifest.sections[i].seeds;
    }
    if (same) return;
    throw DataError("batches of other counts than the manifest says", file.file().path(),
                    kSampleAgain);
  }

  FileSystem& files_;
  const std::string& path_;
  const Control& control_;
  std::mutex mutex_;
  BatchesVerifyReport report_;
  std::int64_t vertices_ = 0, edges_ = 0;
  std::vector<std::int64_t> seeds_;  // by section
};

}  // namespace

BatchesVerifyReport verify_batches(FileSystem& files, const std::string& path,
                                   const Control& control) {
  return Verifier(files, path, control).run();
}

}  // namespace ooc
