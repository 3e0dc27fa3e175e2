// The options of one program or of one of its commands: what they are called, what they take, and
// the variables they set. Options may come from the command line or from --config FILE, under the
// same names; the command line wins. Wrong ones are a UsageError that names the option and what it
// takes.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bin/cli/text.h"
#include "storage/base/closest.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace ooc::cli {

class Command {
 public:
  explicit Command(CLI::App& app);
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  // Names are CLI11's: "-o,--output", "--layers,--num-layers"; the first long one is the option's
  // name in messages and configuration files; a name without dashes, "KIND", is a positional
  // argument. What the variable holds is the default; it must outlive the command.
  void flag(const std::string& names, bool& value, const std::string& description);
  void integer(const std::string& names, std::int64_t& value, std::int64_t least,
               const std::string& description,
               std::int64_t most = std::numeric_limits<std::int64_t>::max());
  // Without it, `value` stays empty.
  void integer(const std::string& names, std::optional<std::int64_t>& value, std::int64_t least,
               const std::string& description,
               std::int64_t most = std::numeric_limits<std::int64_t>::max());
  // From `least` up to `most`, or below it if `most` is excluded.
  struct RealRange {
    double least = 0;
    double most = std::numeric_limits<double>::infinity();
    bool most_excluded = false;
  };
  void real(const std::string& names, double& value, RealRange range,
            const std::string& description);
  // `default_text` says what holds without it, such as "a quarter of RAM".
  void size(const std::string& names, std::int64_t& value, const std::string& default_text,
            const std::string& description);
  // A size, or "auto": as given.
  void size_or_auto(const std::string& names, std::string& value, const std::string& description);
  // A file or directory, `placeholder` in --help; slashes at its end are dropped.
  void path(const std::string& names, std::string& value, const std::string& placeholder,
            const std::string& description);
  // A path to write to: of a symbolic link what it leads to, so that the link stays.
  void output(const std::string& names, std::string& value, const std::string& placeholder,
              const std::string& description);
  // No file, nor what is below one; empty: none.
  void directory(const std::string& names, std::string& value, const std::string& description);
  // A text that `assign` reads, without a default; it returns false for one that isn't what
  // `takes` says, or throws a UsageError that says more. An empty one on the command line is a
  // variable that isn't set, and refused.
  void parsed(const std::string& names, const std::string& placeholder, const std::string& takes,
              const std::string& description, std::function<bool(const std::string&)> assign);
  // One of several words, in letters of either case, or another word that people have for one.
  template <class T>
  void choice(const std::string& names, T& value,
              const std::vector<std::pair<std::string, T>>& words, const std::string& description,
              const std::vector<std::pair<std::string, T>>& also = {}) {
    std::vector<std::string> names_of_words;
    std::string default_word;
    for (const auto& [word, meaning] : words) {
      names_of_words.push_back(word);
      if (meaning == value) default_word = word;
    }
    add_choice(names, names_of_words, default_word, description,
               [&value, words, also](const std::string& given) {
                 for (const auto& known : {words, also}) {
                   for (const auto& [word, meaning] : known) {
                     if (!is_word(given, word)) continue;
                     value = meaning;
                     return true;
                   }
                 }
                 return false;
               });
  }
  // A path without a name, called `key` in a configuration file.
  void positional(const std::string& placeholder, const std::string& key, std::string& value,
                  const std::string& description);
  // The option added last must be given.
  void required();

  // A command of this one, such as `import` of ooc-prep. Belongs to this.
  Command& subcommand(const std::string& name, const std::string& description);
  // Shown by --help: what it does, and the whole line.
  void example(const std::string& purpose, const std::string& line);
  // What to do once all options are set. A program has an action, or commands that have one.
  void action(std::function<void()> run);

  // Whether the option of this name ("epochs") was given, on the command line or in --config.
  bool given(const std::string& key) const;
  bool quiet() const { return quiet_; }

  // For run_program(). Reads the arguments, sets the variables and returns the command asked for.
  Command& parse(int argc, const char* const* argv);
  const std::string& log_level() const { return log_level_; }
  // What --help prints for the command asked for.
  std::string help();
  void run() { action_(); }

 private:
  struct Binding {
    CLI::Option* option;
    std::string name;  // as the messages call it
    std::string key;   // as configuration files call it
    std::string takes;
    bool is_required = false;
    bool may_be_empty = true;  // on the command line
    bool is_given = false;
    std::function<bool(const std::string&)> assign;
  };

  Binding& add(CLI::Option* option, const std::string& takes,
               std::function<bool(const std::string&)> assign);
  CLI::Option* add_option(const std::string& names, const std::string& placeholder,
                          const std::string& default_text, const std::string& description);
  void add_choice(const std::string& names, const std::vector<std::string>& words,
                  const std::string& default_word, const std::string& description,
                  std::function<bool(const std::string&)> assign);
  void add_common_options();
  Binding* find_key(const std::string& key);
  void assign_all();
  [[noreturn]] void refuse_missing(const Binding& binding) const;
  [[noreturn]] void refuse_value(const Binding& binding, const std::string& text,
                                 const std::string& where) const;
  [[noreturn]] void refuse_unknown(const std::vector<std::string>& arguments) const;
  [[noreturn]] void refuse_mismatch(const std::string& message) const;
  std::string suggestion(const std::string& name) const;
  Command& chosen();
  std::string help_hint() const;

  CLI::App& app_;
  std::vector<Binding> bindings_;
  std::vector<std::unique_ptr<Command>> subcommands_;
  std::function<void()> action_;
  std::string examples_;
  bool quiet_ = false;
  std::string log_level_ = "info";
  std::string config_;
};

// The words of a choice from an enum's names, which stand in the order of its values.
template <class T, std::size_t n>
std::vector<std::pair<std::string, T>> enum_words(const std::array<std::string_view, n>& names) {
  std::vector<std::pair<std::string, T>> words;
  for (std::size_t i = 0; i < n; ++i) words.emplace_back(names[i], static_cast<T>(i));
  return words;
}

}  // namespace ooc::cli
