#include "bin/cli/config_file.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include "storage/base/errors.h"
#include "storage/io/file.h"

namespace ooc::cli {

std::map<std::string, ConfigValue> read_config_file(const std::string& path) {
  const std::vector<std::byte> bytes = read_file(posix_file_system(), path);
  const auto line = [&](const toml::source_position& position) {
    return fmt::format("{} line {}", path, position.line);
  };
  toml::table table;
  try {
    table = toml::parse(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
                        path);
  } catch (const toml::parse_error& error) {
    throw UsageError(std::string(error.description()), line(error.source().begin),
                     "write it as TOML: name = value, texts in quotes");
  }
  std::map<std::string, ConfigValue> values;
  for (const auto& [key, node] : table) {
    ConfigValue value{"", line(node.source().begin)};
    if (const auto* text = node.as_string()) {
      value.text = text->get();
    } else if (const auto* integer = node.as_integer()) {
      value.text = std::to_string(integer->get());
    } else if (const auto* real = node.as_floating_point()) {
      value.text = fmt::format("{}", real->get());
    } else if (const auto* truth = node.as_boolean()) {
      value.text = truth->get() ? "true" : "false";
    } else {
      throw UsageError(fmt::format("{} is neither a text, a number nor true or false", key.str()),
                       value.where, "write name = value, with the names of the options");
    }
    values.emplace(std::string(key.str()), std::move(value));
  }
  return values;
}

}  // namespace ooc::cli
