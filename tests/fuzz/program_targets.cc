#include "engine/model/library.h"
#include "engine/model/report.h"
#include "tests/fuzz/targets.h"

namespace ooc::fuzz {

int fuzz_program(Bytes data) {
  ModelOptions options;
  options.model = "fuzzed.saga";
  options.program = std::string(reinterpret_cast<const char*>(data.data()), data.size());
  options.hidden = 4;
  const GraphFacts facts{100, 6, 3, 40, 2, 4, true};
  for (const Norm norm : {Norm::kNone, Norm::kBatch}) {
    options.norm = norm;
    tolerate([&] {
      const bool heads = default_heads(options.program, options.model) > 1;
      options.heads = options.out_heads = heads ? 2 : 1;
      report_model(options, facts);
    });
  }
  return 0;
}

std::vector<std::string> program_seeds() {
  std::vector<std::string> seeds;
  for (const EmbeddedModel& model : embedded_models()) seeds.push_back(model.program);
  seeds.push_back(
      "layer x(in, out) { param w[in, out], s = 0.5 h = vertex @ w slope = 0.1\n"
      "edge { k = columns(src.h, 1, 2) return concat(leaky_relu(k, slope), data.weight * dst) }\n"
      "gather min vertex { return layer_norm(maximum(accum, 1 - accum)) / sqrt(4) * s } }\n"
      "layer y(in, out) { param w[in, out] vertex { return elu(vertex) @ w - 2 } }\n"
      "model { stack x times layers - 1 stack y jumping cat head linear }");
  return seeds;
}

}  // namespace ooc::fuzz
