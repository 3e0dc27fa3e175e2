// The frame of every program: options, logging, errors and exit codes.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "bin/cli/command.h"

namespace ooc::cli {

// Lets `setup` add the options and the action, reads the arguments and runs the action. Results go
// to stdout, logs and progress to stderr. Returns the exit code: 0 done, 1 the run failed, 2 wrong
// usage, 3 bad data, 4 a budget cannot be met, 130 interrupted; errors are one line on stderr.
// The environment variable OOC_DEBUG=1 adds the error's type and debug logs.
int run_program(const std::string& name, const std::string& description, int argc,
                const char* const* argv, const std::function<void(Command&)>& setup);

// A flag that the first SIGINT, SIGTERM or SIGHUP after this call sets, for work that stops by
// itself; the second one ends the process.
const std::atomic<bool>& stop_flag();

}  // namespace ooc::cli
