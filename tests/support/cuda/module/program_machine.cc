// The machine of a program that opens the emulated module, by the environment: CUDA_EMULATION, as
// "devices=1 links=0 driver=13000 capability=90 bytes=268435456 seed=0 lost_after=-1". A seed above
// 0 shuffles; after so many calls of the API the device is lost.
#include <cuda_runtime_api.h>

#include <cstdlib>
#include <map>
#include <sstream>
#include <string>

#include "tests/support/cuda/control.h"

namespace {

struct ProgramMachine {
  ProgramMachine() {
    using cuda_emulation::Order;
    cuda_emulation::Machine machine;
    std::map<std::string, long> given{{"devices", machine.devices},
                                      {"links", machine.links},
                                      {"driver", machine.driver},
                                      {"capability", machine.capability},
                                      {"bytes", static_cast<long>(machine.device_bytes)},
                                      {"seed", 0},
                                      {"lost_after", -1}};
    const char* const text = std::getenv("CUDA_EMULATION");
    std::istringstream words(text == nullptr ? "" : text);
    for (std::string word; words >> word;) {
      const auto equals = word.find('=');
      given.at(word.substr(0, equals)) = std::stol(word.substr(equals + 1));
    }
    machine.devices = static_cast<int>(given["devices"]);
    machine.links = given["links"] != 0;
    machine.driver = static_cast<int>(given["driver"]);
    machine.capability = static_cast<int>(given["capability"]);
    machine.device_bytes = static_cast<std::size_t>(given["bytes"]);
    const long seed = given["seed"];
    cuda_emulation::reset(machine, seed > 0 ? Order::kShuffled : Order::kEager,
                          static_cast<std::uint64_t>(seed));
    if (given["lost_after"] < 0) return;
    cuda_emulation::fail_from(static_cast<int>(given["lost_after"]), cudaErrorLaunchFailure);
  }
};

const ProgramMachine machine;

}  // namespace
