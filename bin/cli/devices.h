// --devices, --device-memory, --link-rate and --io.
#pragma once

#include <string>

#include "bin/cli/command.h"
#include "engine/machine/devices.h"
#include "engine/train/config_words.h"

namespace ooc::cli {

inline void add_device_options(Command& command, MachineShare& on) {
  command.choice<std::string>("--devices", on.devices,
                              {{"auto", "auto"}, {"cpu", "cpu"}, {"cpu:1", "cpu:1"}},
                              "Where to compute. cpu:1: on the CPU as a device with memory of its "
                              "own, to try plans for one");
  command.size_or_auto("--device-memory", on.device_memory,
                       "What may be taken of the memory of a device that has its own, beside "
                       "--host-memory; auto: a quarter of what is free");
  command.size_or_auto("--link-rate", on.link_rate,
                       "Bytes a second that the link to cpu:1 carries each way, which are held to; "
                       "auto: as fast as memory");
}

inline void add_io_option(Command& command, DatasetIo& io) {
  command.choice<DatasetIo>("--io", io, {kDatasetIos.begin(), kDatasetIos.end()},
                            "How the dataset is read: past the page cache by io_uring or threads, "
                            "or where it lies in a mapping; auto: mapped where it takes less than "
                            "half of --host-memory and nothing goes to --scratch, but for cpu:1");
}

}  // namespace ooc::cli
