// Every parser of outside data as a function of bytes, for fuzzers. Hostile bytes may end in an
// ooc::Error, which a target catches; anything else that leaves it, a crash, a hang or an
// allocation that the bytes do not justify is a finding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "storage/base/errors.h"

namespace ooc::fuzz {

using Bytes = std::span<const std::byte>;

// Return 0, as libFuzzer wants it.
int fuzz_npy(Bytes data);
int fuzz_npz(Bytes data);
int fuzz_csv(Bytes data);  // the first byte: whether the rest is a .gz
int fuzz_ids(Bytes data);
int fuzz_mtx(Bytes data);
int fuzz_hdf5(Bytes data);
int fuzz_manifest(Bytes data);
int fuzz_batches_manifest(Bytes data);
int fuzz_program(Bytes data);  // as far as the plan of its training
// The first byte: whether checksums are made right first, so that what lies behind them is reached.
int fuzz_vertex_tensor(Bytes data);
int fuzz_edge_file(Bytes data);
int fuzz_batches(Bytes data);  // the file; the manifest beside it is right

// How many readings of all targets so far came to their end, and how many to an ooc::Error.
struct Outcomes {
  std::int64_t read = 0;
  std::int64_t refused = 0;
};
Outcomes& outcomes();

// Counts what `call` comes to.
template <class Call>
void tolerate(Call&& call) {
  try {
    call();
    ++outcomes().read;
  } catch (const Error&) {
    ++outcomes().refused;
  }
}

struct Target {
  const char* name;
  int (*run)(Bytes data);
  std::vector<std::string> (*seeds)();  // well-formed inputs to start from
  int mutations;                        // that the replay makes
};
std::span<const Target> targets();

std::vector<std::string> npy_seeds();
std::vector<std::string> npz_seeds();
std::vector<std::string> csv_seeds();
std::vector<std::string> ids_seeds();
std::vector<std::string> mtx_seeds();
std::vector<std::string> hdf5_seeds();
std::vector<std::string> manifest_seeds();
std::vector<std::string> program_seeds();
std::vector<std::string> vertex_tensor_seeds();
std::vector<std::string> edge_file_seeds();
std::vector<std::string> batches_manifest_seeds();
std::vector<std::string> batches_seeds();

}  // namespace ooc::fuzz
