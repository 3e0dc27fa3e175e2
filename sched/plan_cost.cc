#include "sched/plan_cost.h"

#include <algorithm>

#include "sched/plan_stages.h"

namespace ooc {

PassWork work_of(const PassBuilder& builder, const PassDraft& pass) {
  const StageShape& stage = builder.stages()[static_cast<std::size_t>(pass.stage)];
  const Program& program = builder.program(stage.section);
  PassWork work;
  const auto add = [&](const std::vector<RowStep>& steps, double rows) {
    const ProductWork products = row_product_work(program, steps);
    work.dropout_elements += rows * row_dropout_elements(program, steps);
    work.products += rows * products.products;
    work.row_sums += rows * products.sums;
  };
  const GraphCounts& graph = builder.graph();
  if (pass.edges) {
    const Propagation& propagation = stage.pass.propagation;
    work.gather_bytes = stage.gather_bytes;
    add(propagation.steps, static_cast<double>(graph.edges.edges) * edge_share(propagation, graph));
  }
  if (pass.rows) {
    work.elementwise_bytes = stage.elementwise_bytes;
    add(stage.pass.steps, static_cast<double>(graph.edges.vertices));
  }
  return work;
}

double compute_seconds(const PassWork& work, const MachineRates& rates) {
  return work.gather_bytes / rates.gather + work.elementwise_bytes / rates.elementwise +
         work.dropout_elements / rates.dropout + work.products / rates.multiply_adds +
         work.row_sums / rates.row_sums;
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
