// The errors ooc reports to its user. Each says what is wrong, where (file, offset, line, row,
// value) and what to do about it; the programs in bin/ print it as one line and exit with the code
// of its type. Only bin/ catches them.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace ooc {

class Error : public std::runtime_error {
 public:
  // Message: "<what>, <where>; <remedy>". An empty part is left out with its separator.
  Error(std::string_view what, std::string_view where, std::string_view remedy);
};

// Wrong option, configuration or program; an output that exists. Exit code 2.
class UsageError : public Error {
 public:
  using Error::Error;
};

// Bad, missing or corrupt data. Exit code 3.
class DataError : public Error {
 public:
  using Error::Error;
};

// The operating system refused: I/O error, no space. Exit code 1.
class IoError : public Error {
 public:
  using Error::Error;
};

// The run itself failed, such as by a loss that is not finite. Exit code 1.
class RunError : public Error {
 public:
  using Error::Error;
};

// A device failed. Exit code 1.
class DeviceError : public Error {
 public:
  using Error::Error;
};

// A memory budget cannot be met. Exit code 4.
class BudgetError : public Error {
 public:
  using Error::Error;
  std::int64_t least_bytes = 0;  // the least budget that would do, if it is known
};

// The user stopped the work (SIGINT, SIGTERM, SIGHUP); nothing is lost. Exit code 130.
class Interrupted : public Error {
 public:
  using Error::Error;
};

// Stops the process: a programmer's mistake, never a user's.
[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace ooc

#define OOC_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::ooc::check_failed(#condition, __FILE__, __LINE__))
