// A model's parameters and their optimiser state in device memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/model/parts/model.h"
#include "kernels/device/backend.h"

namespace ooc {

// One parameter's arrays on the host, rows x cols elements of the store's type each; the
// optimiser's moments are empty where it isn't trained.
struct ParameterValues {
  std::string name;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::vector<std::byte> value, m, v;
};

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::kAdam;
  double lr = 0.01;
  double weight_decay = 0;
  double momentum = 0;  // of SGD
};

// One thread.
class ParameterStore {
 public:
  // One that only evaluates has no moments.
  ParameterStore(Backend& backend, DType real, const std::vector<ModelParameter>& parameters,
                 Mode mode = Mode::kTrain);

  DType real() const { return real_; }
  // Fresh values: a function of the seed and the parameter's name alone.
  void initialise(std::uint64_t seed);
  void set(const std::string& name, std::span<const double> values);  // row-major
  void* data(const std::string& name);

  // Everything, copied to the host and back. restore() takes the same parameters in any order:
  // DataError (naming `where`) if one is missing or of another shape.
  std::vector<ParameterValues> capture() const;
  void restore(const std::vector<ParameterValues>& values, const std::string& where);

  // One step of the optimiser; `gradient` is the parameter's, `step` counts from 1.
  void optimize(const std::string& name, const void* gradient, std::int64_t step,
                const OptimizerOptions& options);
  // running = (1 - momentum) running + momentum batch, for a norm's statistics (PyTorch's rule:
  // momentum 0.1, unbiased variance). `sums`: fp64 [2, cols], as batch_norm_sums leaves it.
  void update_statistics(const BatchStatistics& statistics, const double* sums,
                         std::int64_t vertices);

 private:
  struct Entry {
    ModelParameter parameter;
    std::unique_ptr<DeviceBuffer> value, m, v;
  };
  Entry& entry(const std::string& name);
  std::size_t entry_bytes(const Entry& entry) const;
  // Return when the copy is done.
  void to_device(const std::vector<std::byte>& values, DeviceBuffer& buffer);
  std::vector<std::byte> to_host(const Entry& entry, const DeviceBuffer& buffer) const;
  void blend(const std::string& name, std::span<const double> batch);

  Backend& backend_;
  DType real_;
  std::vector<Entry> entries_;
};

}  // namespace ooc
