// One cell of a gated recurrent unit (Cho et al. 2014), as torch.nn.GRUCell: the columns of Gx and
// Gh are those of the gates r, z and n side by side. Gradients compute the gates again.
#include "kernels/rows/cpu_row_kernels.h"
#include "kernels/rows/cpu_traversal.h"
#include "kernels/spec/element_math.h"

namespace ooc::cpu {
namespace {

// The columns of the three gates from `offset` on.
template <class T>
struct GateRows {
  StripRows<T> r, z, n;
  GateRows(const MatrixView& view, std::int64_t offset)
      : r(view, offset), z(view, view.cols / 3 + offset), n(view, view.cols / 3 * 2 + offset) {}
};

// The gates of one row's piece. A loop a gate, so that each is small enough to be inlined and
// vectorised.
template <class T>
struct Gates {
  T r[kStripCols], z[kStripCols], n[kStripCols];

  template <class Cols>
  Gates(const GateRows<T>& xs, const GateRows<T>& hs, std::int64_t row, Cols cols) {
    add_sigmoid(xs.r.row(row), hs.r.row(row), r, cols);
    add_sigmoid(xs.z.row(row), hs.z.row(row), z, cols);
    const T* x = xs.n.row(row);
    const T* h = hs.n.row(row);
    for (std::int64_t c = 0; c < cols; ++c) n[c] = hyperbolic_tangent(x[c] + r[c] * h[c]);
  }

 private:
  template <class Cols>
  static void add_sigmoid(const T* x, const T* h, T* __restrict gate, Cols cols) {
    for (std::int64_t c = 0; c < cols; ++c) gate[c] = ooc::sigmoid(x[c] + h[c]);
  }
};

// Gradients of Gx (`hidden` false) or Gh, whose n gets r times what Gx's gets.
template <class T, bool Hidden>
void gru_gates_gradient(const OperatorCall& call) {
  const MatrixView &g = call.inputs[0], &gx = call.inputs[1], &gh = call.inputs[2];
  const MatrixView &h = call.inputs[3], &out = call.outputs[0];
  const std::int64_t d = g.cols;
  for_each_piece(
      d, {{g, 0}, {h, 0}, {gx, 0}, {gx, d}, {gx, 2 * d}}, [&](std::int64_t at, std::int64_t piece) {
        const GateRows<T> xs(gx, at), hs(gh, at), dxs(out, at);
        const StripRows<T> gs(g, at), states(h, at);
        with_columns(piece, [=, rows = g.rows](auto cols) {
          for (std::int64_t i = 0; i < rows; ++i) {
            const Gates<T> gate(xs, hs, i, cols);
            const T *hn = hs.n.row(i), *g_row = gs.row(i), *h_row = states.row(i);
            T* __restrict dr = dxs.r.row(i);
            T* __restrict dz = dxs.z.row(i);
            T* __restrict dn = dxs.n.row(i);
            for (std::int64_t c = 0; c < cols; ++c) {
              const T flow = ooc::tanh_gradient(g_row[c] * (T{1} - gate.z[c]), gate.n[c]);
              dr[c] = ooc::sigmoid_gradient(flow * hn[c], gate.r[c]);
              dz[c] = ooc::sigmoid_gradient(g_row[c] * (h_row[c] - gate.n[c]), gate.z[c]);
              dn[c] = Hidden ? flow * gate.r[c] : flow;
            }
          }
        });
      });
}

}  // namespace

template <class T>
void gru(const OperatorCall& call) {
  const MatrixView &gx = call.inputs[0], &gh = call.inputs[1], &h = call.inputs[2];
  const MatrixView& y = call.outputs[0];
  const std::int64_t d = h.cols;
  for_each_piece(d, {{h, 0}, {y, 0}, {gx, 0}, {gx, d}, {gx, 2 * d}},
                 [&](std::int64_t at, std::int64_t piece) {
                   const GateRows<T> xs(gx, at), hs(gh, at);
                   const StripRows<T> states(h, at), ys(y, at);
                   with_columns(piece, [=, rows = y.rows](auto cols) {
                     for (std::int64_t i = 0; i < rows; ++i) {
                       const Gates<T> gate(xs, hs, i, cols);
                       const T* h_row = states.row(i);
                       T* __restrict y_row = ys.row(i);
                       for (std::int64_t c = 0; c < cols; ++c) {
                         y_row[c] = (T{1} - gate.z[c]) * gate.n[c] + gate.z[c] * h_row[c];
                       }
                     }
                   });
                 });
}

template <class T>
void gru_input_gradient(const OperatorCall& call) {
  gru_gates_gradient<T, false>(call);
}

template <class T>
void gru_hidden_gradient(const OperatorCall& call) {
  gru_gates_gradient<T, true>(call);
}

template <class T>
void gru_state_gradient(const OperatorCall& call) {
  const MatrixView &g = call.inputs[0], &gx = call.inputs[1], &gh = call.inputs[2];
  const MatrixView& dh = call.outputs[0];
  for_each_piece(g.cols, {{g, 0}, {gx, g.cols}, {dh, 0}}, [&](std::int64_t at, std::int64_t piece) {
    const GateRows<T> xs(gx, at), hs(gh, at);
    const StripRows<T> gs(g, at), dhs(dh, at);
    with_columns(piece, [&](auto cols) {
      for (std::int64_t i = 0; i < g.rows; ++i) {
        const T *xz = xs.z.row(i), *hz = hs.z.row(i), *g_row = gs.row(i);
        T* __restrict dh_row = dhs.row(i);
        for (std::int64_t c = 0; c < cols; ++c) {
          dh_row[c] = g_row[c] * ooc::sigmoid(xz[c] + hz[c]);
        }
      }
    });
  });
}

#define OOC_INSTANTIATE(T)                                   \
  template void gru<T>(const OperatorCall&);                 \
  template void gru_input_gradient<T>(const OperatorCall&);  \
  template void gru_hidden_gradient<T>(const OperatorCall&); \
  template void gru_state_gradient<T>(const OperatorCall&);
OOC_INSTANTIATE(float)
OOC_INSTANTIATE(double)
#undef OOC_INSTANTIATE

}  // namespace ooc::cpu
