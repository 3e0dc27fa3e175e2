// --devices, --device-memory, --link-rate and --io.
#pragma once

#include <string>

#include "bin/cli/command.h"
#include "engine/machine/devices.h"
#include "engine/train/config_words.h"

namespace ooc::cli {

inline void add_device_options(Command& command, MachineShare& on) {
  command.parsed("--devices", "DEVICE", "auto, cpu, cpu:1, cuda or cuda:N",
                 "Where to compute: on the CPU, or on a GPU, the first one or number N from 0. "
                 "cpu:1: on the CPU as a device with memory of its own, to try plans for one. auto "
                 "(if absent): on the first GPU where there is one, unless a run goes on that "
                 "began on the CPU",
                 [&on](const std::string& text) {
                   if (!is_device(text)) return false;
                   on.devices = text == "cuda" ? "cuda:0" : text;
                   return true;
                 });
  command.size_or_auto("--device-memory", on.device_memory,
                       "What may be taken of the memory of a device that has its own, beside "
                       "--host-memory; auto: of a GPU what is free, of cpu:1 a quarter of what the "
                       "host has");
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
