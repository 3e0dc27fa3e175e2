#include "tests/fuzz/targets.h"

#include <array>
#include <cstdlib>

namespace ooc::fuzz {

Outcomes& outcomes() {
  static Outcomes counts;
  return counts;
}

std::span<const Target> targets() {
  static const int mutations = std::getenv("OOC_NIGHTLY") != nullptr ? 3000 : 300;
  // None of HDF5 files: on some, the library (1.10.8) reads out of bounds (tests/README.md).
  static const std::array<Target, 12> targets = {{
      {"npy", fuzz_npy, npy_seeds, mutations},
      {"npz", fuzz_npz, npz_seeds, mutations},
      {"csv", fuzz_csv, csv_seeds, mutations},
      {"ids", fuzz_ids, ids_seeds, mutations},
      {"mtx", fuzz_mtx, mtx_seeds, mutations},
      {"hdf5", fuzz_hdf5, hdf5_seeds, 0},
      {"program", fuzz_program, program_seeds, mutations},
      {"manifest", fuzz_manifest, manifest_seeds, mutations},
      {"vertex_tensor", fuzz_vertex_tensor, vertex_tensor_seeds, mutations},
      {"edge_file", fuzz_edge_file, edge_file_seeds, mutations},
      {"batches_manifest", fuzz_batches_manifest, batches_manifest_seeds, mutations},
      {"batches", fuzz_batches, batches_seeds, mutations},
  }};
  return targets;
}

}  // namespace ooc::fuzz
