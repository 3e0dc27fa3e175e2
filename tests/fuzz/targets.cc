#include "tests/fuzz/targets.h"

#include <array>

namespace ooc::fuzz {

std::span<const Target> targets() {
  static constexpr std::array<Target, 8> kTargets = {{
      {"npy", fuzz_npy, npy_seeds},
      {"npz", fuzz_npz, npz_seeds},
      {"csv", fuzz_csv, csv_seeds},
      {"mtx", fuzz_mtx, mtx_seeds},
      {"hdf5", fuzz_hdf5, hdf5_seeds},
      {"manifest", fuzz_manifest, manifest_seeds},
      {"vertex_tensor", fuzz_vertex_tensor, vertex_tensor_seeds},
      {"edge_file", fuzz_edge_file, edge_file_seeds},
  }};
  return kTargets;
}

}  // namespace ooc::fuzz
