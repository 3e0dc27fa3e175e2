// Changes to a finished dataset that keep every checksum right: what another writer might have
// made.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "storage/base/half.h"
#include "storage/dataset/dataset.h"

namespace ooc::test {

inline void edit_manifest(FileSystem& files, const std::string& dataset,
                          const std::function<void(Manifest&)>& edit) {
  const std::string path = join_path(dataset, kManifestFile);
  const std::vector<std::byte> bytes = read_file(files, path);
  Manifest manifest = manifest_from_text(
      std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), path);
  edit(manifest);
  const std::string text = manifest_to_text(manifest);
  write_file_atomically(files, path, std::as_bytes(std::span(text)));
}

// Puts another tensor in the place of one, or adds it.
template <class T>
void replace_tensor(FileSystem& files, const std::string& dataset, const std::string& name,
                    std::int64_t cols, std::span<const T> values,
                    const std::function<void(Manifest&)>& edit = {}) {
  edit_manifest(files, dataset, [&](Manifest& manifest) {
    const TensorLayout layout{manifest.edges.vertices, cols, manifest.edges.block_rows};
    VertexTensorWriter writer(files, join_path(dataset, name), DTypeOf<T>::value, layout);
    writer.append_rows(values.data(), layout.rows);
    manifest.files[name] = writer.finish();
    if (edit) edit(manifest);
  });
}

// Stores the features of a dataset as T (Half, BFloat16), or rounds them to it and leaves them
// fp32.
template <class T>
void narrow_features(FileSystem& files, const std::string& dataset, bool round_only) {
  std::vector<float> values;
  std::int64_t cols = 0;
  {
    const Dataset opened = Dataset::open(files, dataset, VerifyPolicy::kFirst);
    cols = opened.manifest().feature_cols;
    values.resize(static_cast<std::size_t>(opened.vertices() * cols));
    opened.tensor("features")->read_rows(0, opened.vertices(), values.data());
  }
  std::vector<T> narrowed(values.size());
  narrow(values.data(), DTypeOf<T>::value, narrowed.data(), values.size());
  if (round_only) {
    widen(DTypeOf<T>::value, narrowed.data(), DType::kF32, values.data(), values.size());
    replace_tensor<float>(files, dataset, "features", cols, values);
  } else {
    replace_tensor<T>(files, dataset, "features", cols, narrowed,
                      [](Manifest& manifest) { manifest.feature_dtype = DTypeOf<T>::value; });
  }
}

}  // namespace ooc::test
