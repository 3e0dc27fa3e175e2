// The memory that an import may use, and what is taken of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ooc {

// A quarter of what the machine, or the control group this process is in, has.
std::int64_t default_import_memory();

// What lies in memory all the time.
struct MemoryPart {
  std::int64_t bytes = 0;
  std::string what;  // "the new order of vertices"
};

// The budget of one import: first what lies there all the time is taken off, such as one value for
// each vertex; free() is for the buffers of the phase at work. One thread.
class ImportMemory {
 public:
  // Takes off what the process itself and its readers use.
  explicit ImportMemory(std::int64_t total_bytes);
  // Takes off these parts. Throws BudgetError where less than the least for buffers would be left:
  // it names the size that would do for everything taken so far, so what is needed later goes into
  // the first call.
  void take(std::vector<MemoryPart> parts);
  void give_back(std::int64_t bytes) { free_ += bytes; }
  // Before the first take() at least what buffers need, whatever the budget.
  std::int64_t free() const;
  // What was taken so far.
  std::int64_t taken() const { return total_ - free_; }
  // The most that take() would give.
  std::int64_t most() const;

 private:
  [[noreturn]] void refuse() const;

  std::int64_t total_;
  std::int64_t free_;
  std::vector<MemoryPart> taken_;
};

}  // namespace ooc
