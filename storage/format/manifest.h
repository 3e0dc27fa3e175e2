// manifest.json of a dataset: what it holds, how it is cut and where it comes from. Its last member
// is the XXH3-64 of everything before it.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "storage/format/chunk_file.h"
#include "storage/format/edge_file.h"
#include "storage/format/feature_scaling.h"

namespace ooc {

inline constexpr std::int64_t kMaxEdgeTypes = 65536;
inline constexpr std::int64_t kMaxEdgeFeatureCols = 65536;
inline constexpr std::int64_t kMaxIdBytes = 65535;

// The labels file: one class a vertex (int32), any number of them (uint8, a column a class), or
// values (fp32, a column a target).
enum class LabelKind { kSingle, kMulti, kValues };
inline constexpr std::array<std::string_view, 3> kLabelKindNames{"single", "multi", "values"};
DType label_dtype(LabelKind kind);
inline std::int64_t label_cols(LabelKind kind, std::int64_t classes) {
  return kind == LabelKind::kSingle ? 1 : classes;
}

// The ids of the input: those of the dense vertices, or others: integers, which original_ids holds,
// or strings, which original_id_bytes and original_id_ends hold.
enum class IdKind { kDense, kIntegers, kStrings };
inline constexpr std::array<std::string_view, 3> kIdKindNames{"none", "integers", "strings"};

// In a multi-label row, an entry without a label. Of values that is NaN, of classes -1.
inline constexpr std::uint8_t kUnlabelled = 255;

struct Manifest {
  EdgeLayout edges;             // vertices, edges and how both directions are cut
  std::int64_t edge_types = 0;  // types are below this; 0: edges have none
  bool symmetric = false;       // edges.in serves both directions
  std::int64_t feature_cols = 0;
  DType feature_dtype = DType::kF32;  // or fp16, bf16
  FeatureScaling feature_scaling;     // of datasets made before it was kept: not known
  std::int64_t classes = 0;           // of values, targets; 0: no labels
  LabelKind labels = LabelKind::kSingle;
  std::vector<std::string> class_names;  // ascending, where the input has names; else empty
  // Entries without a label in the training vertices' rows: labels in a matrix may lack some.
  std::int64_t missing_train_labels = 0;
  // Vertices in train, valid and test; all zero: no splits.
  std::int64_t split_counts[3] = {0, 0, 0};
  std::string order = "natural";
  IdKind remapped = IdKind::kDense;
  std::int64_t id_bytes = 0;      // of all ids together, where they are strings
  std::string transforms = "{}";  // what import was asked for, as JSON
  std::string findings = "{}";    // what it found, as JSON
  std::map<std::string, ChunkFileInfo> files;
  std::string checksum;  // identifies the dataset; set where a manifest was read

  // Labelled entries of the training vertices' rows.
  std::int64_t train_labels() const {
    return split_counts[0] * label_cols(labels, classes) - missing_train_labels;
  }
};

// Whether a dataset can be cut like this, without any count of chunks that overflows.
bool is_possible(const EdgeLayout& layout);

std::string manifest_to_text(const Manifest& manifest);
// DataError: not a manifest, another format version, a wrong checksum, a member missing or wrong.
Manifest manifest_from_text(const std::string& text, const std::string& path);

}  // namespace ooc
