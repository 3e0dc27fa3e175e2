// --config FILE: options from a TOML file, under the names they have on the command line.
#pragma once

#include <map>
#include <string>

namespace ooc::cli {

struct ConfigValue {
  std::string text;   // as it would stand on the command line; "true" and "false" for flags
  std::string where;  // "train.toml line 3"
};

// Values by option name, without dashes. DataError: no such file. UsageError: not TOML, or a value
// that is neither a text, a number nor a truth value.
std::map<std::string, ConfigValue> read_config_file(const std::string& path);

}  // namespace ooc::cli
