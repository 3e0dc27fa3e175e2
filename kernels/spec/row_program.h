// All row-wise steps of a pass as one object: a backend may run them one by one, group of rows
// after group, or fuse them.
//
// A group's rows are read where vertex tensors lie, or, where those are stored in another type,
// from scratch, into which they are converted first. What steps make and no later pass reads lives
// in scratch, too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/spec/matrix_view.h"
#include "kernels/spec/operator.h"

namespace ooc {

struct RowProgram {
  // Where a step finds a value.
  enum class Place {
    kTensor,     // rows of a vertex tensor, where they lie
    kScratch,    // of this group only
    kConverted,  // in scratch, from rows of a tensor of type `stored`
    kMatrix,     // a parameter, or what an earlier pass reduced
    kReduction,  // summed by the steps: a partial a group
  };
  struct Operand {
    Place place = Place::kTensor;
    std::int64_t rows = 0;  // of kMatrix and kReduction
    std::int64_t cols = 0;
    DType dtype = DType::kF32;   // as steps see it
    DType stored = DType::kF32;  // kConverted
    std::int64_t scratch = 0;  // kScratch, kConverted: bytes from the beginning of a lane's scratch
    bool otherwise_stored = false;  // kScratch: of rows that are stored, a tensor's rows instead
  };
  struct Step {
    std::string op;
    std::vector<int> inputs, outputs;  // into `operands`
    Attributes attributes;
    bool skipped = false;  // of rows that are stored
  };

  DType real = DType::kF32;
  std::vector<Operand> operands;
  std::vector<Step> steps;
  std::int64_t group_rows = 0;  // a leaf of the reductions
};

// Where the scratch of a slice begins in that of a value: each is padded to 64 bytes.
std::int64_t scratch_slice_offset(std::int64_t group_rows, std::int64_t cols, DType dtype,
                                  std::int64_t slice);

// A group of rows, RowProgram::group_rows or what is left of a block.
struct RowGroup {
  std::int64_t first_row = 0;  // from where the tensors' addresses are
  std::int64_t rows = 0;
  // By operand; of scratch that isn't a tensor's, and of reductions: nothing.
  std::span<const SlicedRows> operands;
  std::span<void* const> partials;  // zeroed: one for each reduction, in the order of operands
  std::byte* scratch = nullptr;     // a lane's
};

// What Attributes::count counts (CountOf, kernels/spec/row_kernels.h), where a run has its own.
struct StepCounts {
  double rows = 0, labels = 0, label_weights = 0;
};

// Groups for the program, each with a lane of its own.
struct RowCall {
  std::span<const RowGroup> groups;
  bool stored = false;  // whether they are of those that are stored (RowProgram::Step::skipped)
  StepSeed state;
  const StepCounts* counts = nullptr;  // null: as the steps' attributes say
};

// A program made ready for a device. run() takes what the call holds before it returns; only device
// memory stays as it is until the device has passed. Many threads, each with lanes of its own.
class RowWork {
 public:
  virtual ~RowWork() = default;
  virtual void run(const RowCall& call) const = 0;
};

}  // namespace ooc
