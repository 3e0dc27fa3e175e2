#include "bin/cli/command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "bin/cli/config_file.h"
#include "bin/cli/numbers.h"
#include "bin/cli/paths.h"
#include "storage/base/closest.h"
#include "storage/base/errors.h"

namespace ooc::cli {
namespace {

constexpr std::int64_t kUnbounded = std::numeric_limits<std::int64_t>::max();

std::string integers_taken(std::int64_t least, std::int64_t most) {
  if (most != kUnbounded) return fmt::format("a whole number from {} to {}", least, most);
  return fmt::format("a whole number from {} up", least);
}

std::string reals_taken(const Command::RealRange& range) {
  if (!std::isfinite(range.most)) return fmt::format("a number from {} up", range.least);
  return fmt::format("a number from {} {} {}", range.least,
                     range.most_excluded ? "up to but below" : "to", range.most);
}

class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = "\nUsage: " + (name.empty() ? app->get_name() : name);
    if (!app->get_subcommands({}).empty()) usage += " COMMAND";
    for (const CLI::Option* option : app->get_options()) {
      if (option->get_positional()) usage += " " + make_option_usage(option);
    }
    return usage + " [OPTIONS]\n";
  }

  std::string make_option_opts(const CLI::Option* option) const override {
    std::string text;
    if (!option->get_type_name().empty()) text += " " + option->get_type_name();
    if (!option->get_default_str().empty()) text += " (" + option->get_default_str() + ")";
    if (option->get_required() && !option->get_positional()) text += " (required)";
    return text;
  }
};

}  // namespace

Command::Command(CLI::App& app) : app_(app) {
  app_.set_help_flag("-h,--help", "Print this and exit");
  const auto formatter = std::make_shared<HelpFormatter>();
  formatter->column_width(34);
  formatter->label("Subcommands", "Commands");
  app_.formatter(formatter);
}

void Command::add_common_options() {
  const auto level = [this](const std::string& word) {
    log_level_ = word;
    return true;
  };
  path("--config", config_, "FILE",
       "Read options from FILE (TOML, the same names); the command line wins");
  add_choice("--log-level", {"debug", "info", "warn", "error"}, "info", "What to log to stderr",
             level);
  flag("--quiet", quiet_, "Nothing on stderr but warnings and errors");
}

Command::Binding& Command::add(CLI::Option* option, const std::string& takes,
                               std::function<bool(const std::string&)> assign) {
  Binding binding;
  binding.option = option;
  binding.takes = takes;
  binding.assign = std::move(assign);
  if (option->get_lnames().empty()) {
    binding.name = option->get_name();
  } else {
    binding.key = option->get_lnames().front();
    binding.name = "--" + binding.key;
  }
  return bindings_.emplace_back(std::move(binding));
}

CLI::Option* Command::add_option(const std::string& names, const std::string& placeholder,
                                 const std::string& default_text, const std::string& description) {
  CLI::Option* option = app_.add_option(names);
  option->description(description);
  option->type_name(placeholder);
  option->default_str(default_text);
  option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  return option;
}

void Command::flag(const std::string& names, bool& value, const std::string& description) {
  CLI::Option* option = app_.add_flag(names);
  option->type_name("");
  option->description(description);
  option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  add(option, "true or false", [&value](const std::string& text) {
    value = text == "true";
    return value || text == "false";
  });
}

void Command::integer(const std::string& names, std::int64_t& value, std::int64_t least,
                      const std::string& description, std::int64_t most) {
  add(add_option(names, "N", std::to_string(value), description), integers_taken(least, most),
      [&value, least, most](const std::string& text) {
        const std::optional<std::int64_t> parsed = parse_integer(text);
        if (!parsed || *parsed < least || *parsed > most) return false;
        value = *parsed;
        return true;
      });
}

void Command::integer(const std::string& names, std::optional<std::int64_t>& value,
                      std::int64_t least, const std::string& description, std::int64_t most) {
  add(add_option(names, "N", "", description), integers_taken(least, most),
      [&value, least, most](const std::string& text) {
        value = parse_integer(text);
        return value && *value >= least && *value <= most;
      });
}

void Command::real(const std::string& names, double& value, RealRange range,
                   const std::string& description) {
  add(add_option(names, "F", fmt::format("{}", value), description), reals_taken(range),
      [&value, range](const std::string& text) {
        const std::optional<double> parsed = parse_real(text);
        if (!parsed || *parsed < range.least || *parsed > range.most ||
            (range.most_excluded && *parsed == range.most)) {
          return false;
        }
        value = *parsed;
        return true;
      });
}

void Command::size(const std::string& names, std::int64_t& value, const std::string& default_text,
                   const std::string& description) {
  add(add_option(names, "SIZE", default_text, description),
      "a size such as 512MiB, 4GiB or 1.5G; bytes where it has no unit, from 1 MiB up",
      [&value](const std::string& text) {
        const std::int64_t size = credible_size(text);
        if (size > 0) value = size;
        return size > 0;
      });
}

void Command::size_or_auto(const std::string& names, std::string& value,
                           const std::string& description) {
  add(add_option(names, "SIZE|auto", value, description),
      "a size such as 512MiB, 4GiB or 1.5G, or auto; bytes where it has no unit, from 1 MiB up",
      [&value](const std::string& text) {
        if (text != "auto" && credible_size(text) == 0) return false;
        value = text;
        return true;
      });
}

void Command::path(const std::string& names, std::string& value, const std::string& placeholder,
                   const std::string& description) {
  add(add_option(names, placeholder, value, description), "a path",
      [&value](const std::string& text) { return assign_path(value, text); });
}

void Command::output(const std::string& names, std::string& value, const std::string& placeholder,
                     const std::string& description) {
  add(add_option(names, placeholder, value, description), "a path",
      [&value](const std::string& text) {
        if (!assign_path(value, text)) return false;
        value = follow_links(value);
        return true;
      });
}

void Command::directory(const std::string& names, std::string& value,
                        const std::string& description) {
  add(add_option(names, "DIR", value, description), "a directory, which is made if it is missing",
      [&value](const std::string& text) {
        if (text.empty()) {
          value.clear();
          return true;
        }
        return assign_path(value, text) && may_be_directory(value);
      });
}

void Command::parsed(const std::string& names, const std::string& placeholder,
                     const std::string& takes, const std::string& description,
                     std::function<bool(const std::string&)> assign) {
  add(add_option(names, placeholder, "", description), takes, std::move(assign)).may_be_empty =
      false;
}

void Command::add_choice(const std::string& names, const std::vector<std::string>& words,
                         const std::string& default_word, const std::string& description,
                         std::function<bool(const std::string&)> assign) {
  add(add_option(names, fmt::format("{}", fmt::join(words, "|")), default_word, description),
      join_alternatives(words), std::move(assign));
}

void Command::positional(const std::string& placeholder, const std::string& key, std::string& value,
                         const std::string& description) {
  Binding& binding = add(add_option(placeholder, "", "", description), description,
                         [&value](const std::string& text) { return assign_path(value, text); });
  binding.key = key;
}

void Command::required() {
  bindings_.back().is_required = true;
  bindings_.back().option->default_str("");
}

Command& Command::subcommand(const std::string& name, const std::string& description) {
  CLI::App* app = app_.add_subcommand(name, description)->group("Commands");
  app_.require_subcommand(0, 1);
  return *subcommands_.emplace_back(std::make_unique<Command>(*app));
}

void Command::example(const std::string& purpose, const std::string& line) {
  if (examples_.empty()) examples_ = "Examples:";
  examples_ += fmt::format("\n  # {}\n  {}", purpose, line);
  app_.footer(examples_);
}

void Command::action(std::function<void()> run) {
  add_common_options();
  action_ = std::move(run);
}

Command::Binding* Command::find_key(const std::string& key) {
  for (Binding& binding : bindings_) {
    const std::vector<std::string>& names = binding.option->get_lnames();
    if (binding.key == key || std::find(names.begin(), names.end(), key) != names.end()) {
      return &binding;
    }
  }
  return nullptr;
}

bool Command::given(const std::string& key) const {
  for (const Binding& binding : bindings_) {
    if (binding.key == key) return binding.is_given;
  }
  OOC_CHECK(!"an option of this name");
  return false;
}

Command& Command::chosen() {
  for (const std::unique_ptr<Command>& subcommand : subcommands_) {
    if (subcommand->app_.parsed()) return *subcommand;
  }
  return *this;
}

std::string Command::help_hint() const {
  std::string line = app_.get_name();
  if (app_.get_parent() != nullptr) line = app_.get_parent()->get_name() + " " + line;
  return "see " + line + " --help";
}

std::string Command::help() {
  Command& command = chosen();
  // Only now: CLI11 itself shall not ask for them, its messages are not ours.
  for (Binding& binding : command.bindings_) binding.option->required(binding.is_required);
  return app_.help();
}

Command& Command::parse(int argc, const char* const* argv) {
  try {
    app_.parse(argc, argv);
  } catch (const CLI::ExtrasError&) {
    chosen().refuse_unknown(app_.remaining(true));
  } catch (const CLI::ArgumentMismatch& error) {
    chosen().refuse_mismatch(error.what());
  } catch (const CLI::Success&) {
    throw;
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what(), "command line", chosen().help_hint());
  }
  Command& command = chosen();
  if (!command.action_) {
    std::vector<std::string> names;
    for (const auto& subcommand : subcommands_) names.push_back(subcommand->app_.get_name());
    throw UsageError("a command is missing", "command line",
                     fmt::format("it is {}: {}", join_alternatives(names), help_hint()));
  }
  command.assign_all();
  return command;
}

void Command::assign_all() {
  for (Binding& binding : bindings_) {
    if (binding.option->count() == 0) continue;
    const std::string& text = binding.option->results().back();
    binding.is_given = true;
    // `-o --quiet`: CLI11 takes the next option for the value.
    if (text.starts_with("--") && find_key(text.substr(2)) != nullptr) refuse_missing(binding);
    if (text.empty() && !binding.may_be_empty) refuse_missing(binding);
    if (!binding.assign(text)) refuse_value(binding, text, "command line");
  }
  if (!config_.empty()) {
    for (const auto& [key, value] : read_config_file(config_)) {
      Binding* binding = find_key(key);
      if (key == "config") {
        throw UsageError("a configuration file cannot name another", value.where, "leave it out");
      }
      if (binding == nullptr) {
        throw UsageError(fmt::format("unknown option {}", key), value.where, suggestion(key));
      }
      if (binding->option->count() > 0) continue;
      binding->is_given = true;
      if (!binding->assign(value.text)) refuse_value(*binding, value.text, value.where);
    }
  }
  for (const Binding& binding : bindings_) {
    if (binding.is_required && !binding.is_given) {
      throw UsageError(binding.name + " is missing", "command line",
                       fmt::format("it takes {}: {}", binding.takes, help_hint()));
    }
  }
}

void Command::refuse_missing(const Binding& binding) const {
  throw UsageError(binding.name + " has no value", "command line", "it takes " + binding.takes);
}

void Command::refuse_value(const Binding& binding, const std::string& text,
                           const std::string& where) const {
  throw UsageError(fmt::format("{} cannot be '{}'", binding.name, text), where,
                   "it takes " + binding.takes);
}

// For an option's name, with dashes (command line) or without (configuration file).
std::string Command::suggestion(const std::string& name) const {
  const std::string dashes = name.starts_with("-") ? "--" : "";
  std::vector<std::string> candidates;
  for (const Binding& binding : bindings_) {
    for (const std::string& alias : binding.option->get_lnames()) {
      candidates.push_back(dashes + alias);
    }
  }
  const std::string best = closest(name, candidates);
  return best.empty() ? help_hint() : fmt::format("did you mean {}? {}", best, help_hint());
}

void Command::refuse_unknown(const std::vector<std::string>& arguments) const {
  for (const std::string& argument : arguments) {
    if (!argument.starts_with("-") || argument == "-" || argument == "--") continue;
    const std::string name = argument.substr(0, argument.find('='));
    throw UsageError("unknown option " + name, "command line", suggestion(name));
  }
  const std::string& first = arguments.front();
  if (subcommands_.empty()) {
    throw UsageError(fmt::format("unexpected argument '{}'", first), "command line", help_hint());
  }
  std::vector<std::string> names;
  for (const auto& subcommand : subcommands_) names.push_back(subcommand->app_.get_name());
  throw UsageError(fmt::format("unknown command '{}'", first), "command line",
                   fmt::format("it is {}: {}", join_alternatives(names), help_hint()));
}

void Command::refuse_mismatch(const std::string& message) const {
  // CLI11 begins the message with the option's name.
  const std::string name = message.substr(0, message.find_first_of(": "));
  for (const Binding& binding : bindings_) {
    if (!binding.option->check_name(name)) continue;
    refuse_missing(binding);
  }
  throw UsageError(message, "command line", help_hint());
}

}  // namespace ooc::cli
