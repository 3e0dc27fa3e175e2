#include "storage/base/errors.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace ooc {
namespace {

std::string join(std::string_view what, std::string_view where, std::string_view remedy) {
  std::string message(what);
  if (!where.empty()) message.append(", ").append(where);
  if (!remedy.empty()) message.append("; ").append(remedy);
  std::replace(message.begin(), message.end(), '\0', '?');  // what() would end there
  return message;
}

}  // namespace

Error::Error(std::string_view what, std::string_view where, std::string_view remedy)
    : std::runtime_error(join(what, where, remedy)) {}

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace ooc
