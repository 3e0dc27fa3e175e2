// What this machine does in a second, measured: what a plan's predictions are made of.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "kernels/device/backend.h"
#include "sched/plan/options.h"
#include "storage/io/block_file.h"
#include "storage/io/file.h"

namespace ooc {

// What /proc/cpuinfo calls the processor; empty where it says nothing.
std::string processor_name();

struct RateOptions {
  std::string directory;  // of the storage
  std::int64_t workers = 1;
  std::int64_t memory_bytes = 64 << 20;  // what measuring may take, about; it gives them back
  double seconds = 0.4;                  // of each rate, in rounds; the median counts
};

// Measures writing and reading a file past the page cache, while threads go through memory, and,
// with as many threads as there are workers, sums of random rows of a tensor, element-wise
// operators, products of matrices (rate_probes.h): once for a host's name, a processor, OpenBLAS's
// kernels for it, a way of reading, a number of workers, so much memory (within a factor of two)
// and the device that the directory lies on, kept in `cache`, a directory that is made where it is
// missing. What is kept there and cannot be read is measured anew; where it can't be kept, or
// `cache` is empty, every time. Where no file can be made the rates of storage are MachineRates'
// own, and nothing is kept. IoError where it cannot be written or read.
MachineRates machine_rates(FileSystem& files, BlockIo& io, const RateOptions& options,
                           const std::string& cache);

// Measures the link to a device with memory of its own, by copies of 64 MiB each way, and sets
// to_device and from_device: once for a host's name and `link`, which says what the device is and
// where, kept as above. `open` makes the device. What can't be measured stays as it is.
void measure_link(FileSystem& files, const std::string& link,
                  const std::function<std::unique_ptr<Backend>()>& open, const std::string& cache,
                  MachineRates& rates);

// Rates that were kept, as machine_rates() keeps them: JSON, all rates in bytes, elements or
// multiply-adds a second. DataError where one is missing, not positive or unknown.
MachineRates read_rates(FileSystem& files, const std::string& path);
// What such a file says beside them of GPUs and their links, of which each is optional: to_device,
// from_device, device_gather, device_elementwise, device_dropout, device_multiply_adds,
// device_row_sums. DataError as above.
void read_device_rates(FileSystem& files, const std::string& path, MachineRates& rates);

// $XDG_CACHE_HOME/ooc, or ~/.cache/ooc; empty where neither variable is set.
std::string rates_cache();

}  // namespace ooc
