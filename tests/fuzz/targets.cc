#include "tests/fuzz/targets.h"

#include <array>

namespace ooc::fuzz {

Outcomes& outcomes() {
  static Outcomes counts;
  return counts;
}

std::span<const Target> targets() {
  constexpr int kMutations = 3000;
  // None of HDF5 files: on some, the library (1.10.8) reads out of bounds (tests/README.md).
  static constexpr std::array<Target, 10> kTargets = {{
      {"npy", fuzz_npy, npy_seeds, kMutations},
      {"npz", fuzz_npz, npz_seeds, kMutations},
      {"csv", fuzz_csv, csv_seeds, kMutations},
      {"ids", fuzz_ids, ids_seeds, kMutations},
      {"mtx", fuzz_mtx, mtx_seeds, kMutations},
      {"hdf5", fuzz_hdf5, hdf5_seeds, 0},
      {"program", fuzz_program, program_seeds, kMutations},
      {"manifest", fuzz_manifest, manifest_seeds, kMutations},
      {"vertex_tensor", fuzz_vertex_tensor, vertex_tensor_seeds, kMutations},
      {"edge_file", fuzz_edge_file, edge_file_seeds, kMutations},
  }};
  return kTargets;
}

}  // namespace ooc::fuzz
