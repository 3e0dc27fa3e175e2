#include "bin/cli/program.h"

#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/core/demangle.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <typeinfo>

#include "bin/cli/required_vectors.h"
#include "bin/cli/terminal.h"
#include "storage/base/errors.h"
#include "storage/io/file.h"

namespace ooc::cli {
namespace {

[[gnu::used,
  gnu::section(".preinit_array")]] void (*const g_before_all)(int, char**,
                                                              char**) = check_required_vectors;

std::atomic<bool> g_stop{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may only touch such");

void on_signal(int signal) {
  if (!g_stop.exchange(true)) return;
  std::signal(signal, SIG_DFL);
  ::raise(signal);
}

bool debugging() {
  const char* value = std::getenv("OOC_DEBUG");
  return value != nullptr && std::string_view(value) == "1";
}

void start_logging(const std::string& name) {
  auto logger = spdlog::stderr_color_mt(
      name, no_color() ? spdlog::color_mode::never : spdlog::color_mode::automatic);
  // On a terminal a log line takes the place of the progress bar, which is drawn again below it.
  const std::string clear = stderr_renews_lines() ? kClearLine : "";
  logger->set_pattern(clear + "%n: %^%l%$: %v");
  spdlog::set_default_logger(std::move(logger));
}

void set_log_level(const Command& command) {
  spdlog::level::level_enum level = spdlog::level::from_str(command.log_level());
  if (debugging()) level = spdlog::level::debug;
  if (command.quiet()) level = std::max(level, spdlog::level::warn);
  spdlog::set_level(level);
}

// One line, whatever the message holds.
void print_error(const std::string& name, const char* label, const std::exception& error) {
  const std::string message = printable(error.what());
  fmt::print(stderr, "{}{}: {}{}\n", stderr_renews_lines() ? kClearLine : "", name, label, message);
  if (debugging()) {
    fmt::print(stderr, "{}: debug: {}, ooc {}\n", name, boost::core::demangle(typeid(error).name()),
               OOC_VERSION);
  }
}

// Results that could not be written must not look like a success.
void flush_results() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
    throw_file_error(errno, "cannot write results", "standard output");
  }
}

void run(const std::string& name, const std::string& description, int argc, const char* const* argv,
         const std::function<void(Command&)>& setup) {
  CLI::App app(description, name);
  app.set_version_flag("--version", name + " " + OOC_VERSION, "Print the version and exit");
  Command program(app);
  setup(program);
  try {
    Command& command = program.parse(argc, argv);
    set_log_level(command);
    command.run();
  } catch (const CLI::CallForVersion& version) {
    fmt::print("{}\n", version.what());
  } catch (const CLI::Success&) {
    fmt::print("{}", program.help());
  }
  flush_results();
}

}  // namespace

int run_program(const std::string& name, const std::string& description, int argc,
                const char* const* argv, const std::function<void(Command&)>& setup) {
  // A write past the limit on file sizes shall fail and be reported, not end the process.
  std::signal(SIGXFSZ, SIG_IGN);
  start_logging(name);
  try {
    run(name, description, argc, argv, setup);
    return 0;
  } catch (const Interrupted& error) {
    print_error(name, "", error);
    return 130;
  } catch (const UsageError& error) {
    print_error(name, "error: ", error);
    return 2;
  } catch (const DataError& error) {
    print_error(name, "error: ", error);
    return 3;
  } catch (const BudgetError& error) {
    print_error(name, "error: ", error);
    return 4;
  } catch (const std::bad_alloc&) {
    print_error(name, "error: ", Error("out of memory", "", "free some or use a larger machine"));
  } catch (const std::exception& error) {
    print_error(name, "error: ", error);
  }
  return 1;
}

const std::atomic<bool>& stop_flag() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  ::sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);  // as nohup asks
  }
  return g_stop;
}

}  // namespace ooc::cli
