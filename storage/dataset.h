// A dataset: the directory NAME.ooc that ooc-prep makes (storage/README.md). Immutable.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "storage/edge_file.h"
#include "storage/file.h"
#include "storage/manifest.h"
#include "storage/vertex_tensor.h"

namespace ooc {

// Values of the splits file.
enum class Split : std::uint8_t { kNone = 0, kTrain = 1, kValid = 2, kTest = 3 };

// Columns of the degrees file (int32): parallel edges count each, self loops only in the last.
inline constexpr std::int64_t kDegreeColumns = 3;
inline constexpr std::int64_t kInDegree = 0;
inline constexpr std::int64_t kOutDegree = 1;
inline constexpr std::int64_t kSelfLoops = 2;

inline constexpr const char* kManifestFile = "manifest.json";

// All methods may be called from many threads.
class Dataset {
 public:
  // Opens every file; DataError if the directory is none, or a file is missing, disagrees with the
  // manifest or is of a newer format.
  static Dataset open(FileSystem& files, const std::string& path, VerifyPolicy verify);

  const std::string& path() const { return path_; }
  const Manifest& manifest() const { return manifest_; }
  std::int64_t vertices() const { return manifest_.edges.vertices; }
  std::int64_t edges() const { return manifest_.edges.edges; }
  bool has_splits() const { return splits_ != nullptr; }

  // The edges that a propagation in this direction follows.
  const EdgeFile& edge_file(Direction direction) const;
  // Vertex tensors by file name: "features" (fp32), "labels" (int32), "splits" (uint8), "ids"
  // (int64: the original id of each vertex), "degrees" (int32 x 3). Null where there is none.
  const VertexTensorFile* tensor(std::string_view name) const;

  // Reads labels and splits and checks that they are what the manifest says: DataError. For whoever
  // indexes by them, since a checksum says nothing about what was written.
  void check_labels() const;
  // Reads every byte and checks every checksum, gap and invariant; DataError at the first fault.
  void verify(const std::function<void(std::string_view file)>& progress) const;

 private:
  void verify_degrees() const;
  void verify_ids() const;
  std::unique_ptr<VertexTensorFile> open_tensor(FileSystem& files, VerifyPolicy verify,
                                                const std::string& name, DType dtype,
                                                std::int64_t cols);
  void check_info(const std::string& name, const ChunkFileReader& file) const;

  std::string path_;
  Manifest manifest_;
  std::unique_ptr<EdgeFile> in_, out_;
  std::unique_ptr<VertexTensorFile> features_, labels_, splits_, ids_, degrees_;
};

}  // namespace ooc
