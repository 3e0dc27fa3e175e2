// --devices, --device-memory, --link-rate and --io.
#pragma once

#include <string>

#include "bin/cli/command.h"
#include "engine/machine/devices.h"
#include "engine/train/config_words.h"

namespace ooc::cli {

inline void add_device_options(Command& command, MachineShare& on) {
  command.parsed("--devices", "DEVICES", "auto, cpu, cpu:N, cuda or a list such as cuda:0,2",
                 "Where to compute: on the CPU, or on GPUs, all or those numbers from 0. cpu:N: on "
                 "the CPU as N devices with memory of their own, to try plans for them. auto (if "
                 "absent): on the first GPU where there is one, unless a run goes on that began on "
                 "the CPU",
                 [&on](const std::string& text) {
                   if (!is_device(text)) return false;
                   on.devices = text;
                   return true;
                 });
  command.choice<DevicePartition>(
      "--device-partition", on.partition, {kDevicePartitions.begin(), kDevicePartitions.end()},
      "How several devices share the vertices, each a range of blocks: with as many in-edges, or "
      "as many vertices");
  command.choice<std::string>(
      "--ring", on.ring, {{"on", "on"}, {"off", "off"}},
      "Several devices pass on to each other what all of them read, so that it "
      "comes from the host once, or each reads all of it");
  command.parsed("--topology", "FILE.json", "a file's name",
                 "How the devices' links hang together (docs/topologies has examples): who reads "
                 "from the host, and in which order they pass on. cpu:N is held to its rates",
                 [&on](const std::string& text) {
                   on.topology = text;  // none of a configuration is empty
                   return true;
                 });
  command.size_or_auto("--device-memory", on.device_memory,
                       "What may be taken of the memory of each device that has its own, "
                       "beside --host-memory; auto: of a GPU what is free, of cpu:N a quarter of "
                       "what the host has for all");
  command.size_or_auto("--link-rate", on.link_rate,
                       "Bytes a second that the links to cpu:N carry each way, which are held to; "
                       "auto: as fast as memory");
}

inline void add_io_option(Command& command, DatasetIo& io) {
  command.choice<DatasetIo>("--io", io, {kDatasetIos.begin(), kDatasetIos.end()},
                            "How the dataset is read: past the page cache by io_uring or threads, "
                            "or where it lies in a mapping; auto: mapped where it takes less than "
                            "half of --host-memory and nothing goes to --scratch, but for cpu:N");
}

}  // namespace ooc::cli
