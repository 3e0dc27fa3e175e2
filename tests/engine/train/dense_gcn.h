// A GCN by another method: dense matrices in double, straight from the formula. For tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "storage/format/edge_file.h"

namespace ooc::test {

struct Dense {
  std::int64_t rows = 0, cols = 0;
  std::vector<double> values;

  Dense(std::int64_t r, std::int64_t c)
      : rows(r), cols(c), values(static_cast<std::size_t>(r * c), 0.0) {}
  double& at(std::int64_t r, std::int64_t c) {
    return values[static_cast<std::size_t>(r * cols + c)];
  }
  double at(std::int64_t r, std::int64_t c) const {
    return values[static_cast<std::size_t>(r * cols + c)];
  }
};

inline Dense multiply(const Dense& a, const Dense& b) {
  Dense out(a.rows, b.cols);
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t k = 0; k < a.cols; ++k) {
      for (std::int64_t j = 0; j < b.cols; ++j) out.at(i, j) += a.at(i, k) * b.at(k, j);
    }
  }
  return out;
}

// D_in^-1/2 (A + I) D_out^-1/2 as a matrix, row = destination: parallel edges add up, I adds a loop
// where the data have none, degrees count loops.
inline Dense normalised_adjacency(const std::vector<Edge>& edges, std::int64_t vertices) {
  Dense a(vertices, vertices);
  for (const Edge& edge : edges) {
    a.at(edge.destination, edge.source) += 1;
  }
  for (std::int64_t v = 0; v < vertices; ++v) a.at(v, v) = std::max(a.at(v, v), 1.0);
  std::vector<double> in(static_cast<std::size_t>(vertices)), out(in.size());
  for (std::int64_t v = 0; v < vertices; ++v) {
    for (std::int64_t u = 0; u < vertices; ++u) {
      in[static_cast<std::size_t>(v)] += a.at(v, u);
      out[static_cast<std::size_t>(u)] += a.at(v, u);
    }
  }
  for (std::int64_t v = 0; v < vertices; ++v) {
    for (std::int64_t u = 0; u < vertices; ++u) {
      a.at(v, u) /= std::sqrt(in[static_cast<std::size_t>(v)] * out[static_cast<std::size_t>(u)]);
    }
  }
  return a;
}

// act(A H W + b), layer after layer, no activation after the last.
inline Dense dense_gcn(const Dense& adjacency, Dense h, const std::vector<Dense>& weights,
                       const std::vector<std::vector<double>>& biases) {
  for (std::size_t layer = 0; layer < weights.size(); ++layer) {
    h = multiply(multiply(adjacency, h), weights[layer]);
    for (std::int64_t v = 0; v < h.rows; ++v) {
      for (std::int64_t c = 0; c < h.cols; ++c) {
        h.at(v, c) += biases[layer][static_cast<std::size_t>(c)];
        if (layer + 1 < weights.size() && h.at(v, c) < 0) h.at(v, c) = 0;
      }
    }
  }
  return h;
}

// Mean cross-entropy of the rows for which chosen(row).
template <class Chosen, class Label>
double dense_cross_entropy(const Dense& logits, Chosen&& chosen, Label&& label) {
  double sum = 0;
  int count = 0;
  for (std::int64_t v = 0; v < logits.rows; ++v) {
    if (!chosen(v)) continue;
    double total = 0;
    for (std::int64_t c = 0; c < logits.cols; ++c) total += std::exp(logits.at(v, c));
    sum += std::log(total) - logits.at(v, label(v));
    ++count;
  }
  return sum / count;
}

}  // namespace ooc::test
