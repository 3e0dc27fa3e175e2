// The memory that an import may use, and what is taken of it.
#pragma once

#include <cstdint>
#include <string_view>

namespace ooc {

// A quarter of what the machine, or the control group this process is in, has.
std::int64_t default_import_memory();

// The budget of one import: first what lies there all the time is taken off, such as one value for
// each vertex; free() is for the buffers of the phase at work. One thread.
class ImportMemory {
 public:
  // Takes off what the process itself and its readers use. Throws BudgetError where nothing is
  // left.
  explicit ImportMemory(std::int64_t total_bytes);
  // Takes off `bytes` for `what` ("the new order of vertices"). Throws BudgetError where less than
  // the least for buffers would be left: it names the size that would do.
  void take(std::int64_t bytes, std::string_view what);
  void give_back(std::int64_t bytes) { free_ += bytes; }
  std::int64_t free() const { return free_; }
  // The most that take() would give.
  std::int64_t most() const;

 private:
  std::int64_t total_;
  std::int64_t free_;
};

}  // namespace ooc
