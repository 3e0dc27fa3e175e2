// How this machine's GPUs are linked: PCI Express as the system knows it (hwloc), NVLink as CUDA
// does.
#pragma once

#include <string>
#include <vector>

namespace ooc {

// A GPU of a run.
struct GpuPlace {
  std::string pci_address;  // 0000:41:00.0
  // By GPU of the run: bytes a second of a link of their own, each way; 0: there is none.
  std::vector<double> peers;
};

// As --topology reads it (engine/machine/topology.h): bridges and their links at four fifths of
// what they can do, devices numbered in order. Empty where the system doesn't know all of the
// GPUs.
std::string machine_topology(const std::vector<GpuPlace>& gpus);

}  // namespace ooc
