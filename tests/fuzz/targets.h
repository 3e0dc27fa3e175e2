// Every parser of outside data as a function of bytes, for fuzzers. Hostile bytes may end in an
// ooc::Error, which a target catches; anything else that leaves it, a crash, a hang or an
// allocation that the bytes do not justify is a finding.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace ooc::fuzz {

using Bytes = std::span<const std::byte>;

// Return 0, as libFuzzer wants it.
int fuzz_npy(Bytes data);
int fuzz_npz(Bytes data);
int fuzz_csv(Bytes data);  // the first byte: whether the rest is a .gz
int fuzz_mtx(Bytes data);
int fuzz_hdf5(Bytes data);
int fuzz_manifest(Bytes data);
// The first byte: whether checksums are made right first, so that what lies behind them is reached.
int fuzz_vertex_tensor(Bytes data);
int fuzz_edge_file(Bytes data);

struct Target {
  const char* name;
  int (*run)(Bytes data);
  std::vector<std::string> (*seeds)();  // well-formed inputs to start from
};
std::span<const Target> targets();

std::vector<std::string> npy_seeds();
std::vector<std::string> npz_seeds();
std::vector<std::string> csv_seeds();
std::vector<std::string> mtx_seeds();
std::vector<std::string> hdf5_seeds();
std::vector<std::string> manifest_seeds();
std::vector<std::string> vertex_tensor_seeds();
std::vector<std::string> edge_file_seeds();

}  // namespace ooc::fuzz
