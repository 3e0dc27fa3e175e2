#include "sched/plan_cost.h"

#include <algorithm>

namespace ooc {

PassWork work_of(const PassBuilder& builder, const PassDraft& pass) {
  const StageShape& stage = builder.stages()[static_cast<std::size_t>(pass.stage)];
  PassWork work;
  if (pass.edges) {
    work.gather_bytes = stage.gather_bytes;
    work.multiply_adds += stage.edge_multiply_adds;
  }
  if (pass.rows) {
    work.elementwise_bytes = stage.elementwise_bytes;
    work.multiply_adds += stage.row_multiply_adds - stage.row_sum_multiply_adds;
    work.row_sums = stage.row_sum_multiply_adds;
  }
  return work;
}

double compute_seconds(const PassWork& work, const MachineRates& rates) {
  return work.gather_bytes / rates.gather + work.elementwise_bytes / rates.elementwise +
         work.multiply_adds / rates.multiply_adds + work.row_sums / rates.row_sums;
}

double overlapped_seconds(double transfers, double compute, double depth) {
  const double apart = std::min(transfers, compute) / depth;
  return std::max(transfers, compute) + apart;
}

TransferRates storage_rates(const MachineRates& rates) {
  return {rates.storage_read, rates.storage_write, rates.storage_both};
}

TransferRates link_rates(const MachineRates& rates) {
  return {rates.to_device, rates.from_device, rates.to_device + rates.from_device};
}

double transfer_seconds(const Traffic& traffic, const TransferRates& rates) {
  const auto read = static_cast<double>(traffic.read);
  const auto written = static_cast<double>(traffic.written);
  return std::max({read / rates.read, written / rates.write, (read + written) / rates.both});
}

}  // namespace ooc
