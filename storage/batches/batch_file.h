// Sampled batches in a file: the directory NAME.batches that ooc-prep sample makes
// (storage/batches/README.md), all that a training needs. Immutable.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "storage/batches/batches_manifest.h"
#include "storage/format/chunk_file.h"
#include "storage/io/file.h"
#include "storage/io/output_directory.h"

namespace ooc {

// Whether a directory is one of batches, as its manifest says; any other path isn't.
bool is_batches(FileSystem& files, const std::string& path);

// Writes batches one after the other, under a temporary name until commit(). One thread.
class BatchFileWriter {
 public:
  // UsageError as DatasetWriter's: `path` exists and `force` isn't set, or it is none of batches.
  // Destroyed without commit(), it removes what was written.
  BatchFileWriter(FileSystem& files, std::string path, bool force);
  // Before the first add(). `manifest`: dataset, sampled, and sections, in whose order batches
  // come.
  void begin(BatchesManifest manifest);
  const BatchLayout& layout() const { return *layout_; }  // after begin()
  // A directory for temporary use; removed before commit().
  std::string scratch_path() const { return directory_.file_path("scratch"); }

  // The next batch. Its memory is free afterwards; it is copied meanwhile.
  void add(const BatchView& batch);
  // Makes all of it durable and gives it its name. Every batch must be there. Returns the manifest.
  BatchesManifest commit();

 private:
  void count_labels(const BatchView& batch);

  FileSystem& files_;
  OutputDirectory directory_;
  BatchesManifest manifest_;
  std::optional<BatchLayout> layout_;
  std::unique_ptr<ChunkFileWriter> writer_;
  std::int64_t added_ = 0;
};

// Many threads.
class BatchFile {
 public:
  // DataError: no such directory, or its file is missing, damaged or another's.
  static BatchFile open(FileSystem& files, const std::string& path, VerifyPolicy verify);

  const std::string& path() const { return path_; }
  const BatchesManifest& manifest() const { return manifest_; }
  const BatchLayout& layout() const { return layout_; }
  std::int64_t batches() const { return manifest_.batches(); }
  const ChunkFileReader& file() const { return *file_; }
  std::int64_t largest_chunk() const;  // bytes

  // The batch in a chunk that was read, into which it points. It is checked, and where the policy
  // asks for it the checksum is compared: DataError, naming chunk and offset.
  BatchView view(std::int64_t batch, std::span<const std::byte> chunk) const;

 private:
  BatchFile(std::string path, BatchesManifest manifest, std::unique_ptr<ChunkFileReader> file);

  std::string path_;
  BatchesManifest manifest_;
  BatchLayout layout_;
  std::unique_ptr<ChunkFileReader> file_;
};

}  // namespace ooc
