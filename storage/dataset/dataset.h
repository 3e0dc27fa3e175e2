// A dataset: the directory NAME.ooc that ooc-prep makes (storage/format/README.md). Immutable.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "storage/base/control.h"
#include "storage/format/edge_file.h"
#include "storage/format/manifest.h"
#include "storage/format/vertex_tensor.h"
#include "storage/io/file.h"

namespace ooc {

// Values of the splits file.
enum class Split : std::uint8_t { kNone = 0, kTrain = 1, kValid = 2, kTest = 3 };

// Columns of the degrees file (int32): parallel edges count each, self loops only in the last.
inline constexpr std::int64_t kDegreeColumns = 3;
inline constexpr std::int64_t kInDegree = 0;
inline constexpr std::int64_t kOutDegree = 1;
inline constexpr std::int64_t kSelfLoops = 2;

inline constexpr const char* kManifestFile = "manifest.json";

// The vertex tensors that a dataset of this manifest may have. `dtype`, `rows` and
// `cols` are what they must be.
struct TensorSpec {
  std::string name;
  DType dtype;
  std::int64_t rows;
  std::int64_t cols;
  bool required;
};
std::vector<TensorSpec> tensor_specs(const Manifest& manifest);

// DataError if there is no dataset directory of this name.
void check_is_dataset(FileSystem& files, const std::string& path);

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
  // Whether the input's vertices had other ids than 0 to V - 1 (storage/dataset/original_names.h).
  bool remapped() const { return manifest_.remapped != IdKind::kDense; }
  bool has_splits() const { return tensor("splits") != nullptr; }

  // The edges that a propagation in this direction follows.
  const EdgeFile& edge_file(Direction direction) const;
  // Vertex tensors by file name: "features" (fp32, fp16 or bf16), "labels" (as the manifest's
  // LabelKind), "splits" (uint8), "ids" (int64: the original id of each vertex), "degrees"
  // (int32 x 3), "original_ids" (int64, where the input has other integers as ids: what it calls
  // the vertex; they ascend as "ids" do), or, where it has strings, "original_id_ends" and
  // "original_id_bytes". Null where there is none.
  const VertexTensorFile* tensor(std::string_view name) const;

  // Reads labels and splits and checks that they are what the manifest says: DataError. For whoever
  // indexes by them, since a checksum says nothing about what was written.
  void check_labels() const;
  // Throws the first fault that verify_dataset() finds (storage/dataset/dataset_verify.h).
  void verify(const Control& control = {}) const;

 private:
  void check_info(const std::string& name, const ChunkFileReader& file) const;

  FileSystem* files_ = nullptr;
  std::string path_;
  Manifest manifest_;
  std::unique_ptr<EdgeFile> in_, out_;
  std::map<std::string, VertexTensorFile, std::less<>> tensors_;
};

}  // namespace ooc
