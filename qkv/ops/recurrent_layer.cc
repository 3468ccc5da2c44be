// Buffers, steps and weight gradients of one recurrent layer.
#include "qkv/ops/recurrent_layer.h"

#include <algorithm>

#include "qkv/core/autograd.h"

namespace qkv::rnn {
namespace {

constexpr int64_t kRowBlock = 64;

// Rows copied as (to, from) pairs given by `at`.
template <class Fn>
void copy_rows(const Tensor& from, Tensor& to, int64_t n, Fn&& at) {
  const int64_t C = to.dim(1);
  dispatch(from.dtype(), [&](auto t) {
    using T = decltype(t);
    const T* source = from.data<T>();
    T* target = to.data<T>();
    parallel_blocks(n, kRowBlock, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const auto [to_row, from_row] = at(i);
        std::copy_n(source + from_row * C, C, target + to_row * C);
      }
    });
  });
}

void check_parameter(const char* op, const char* name, const Tensor& p, const Shape& wanted, DType dtype) {
  if (!p.defined()) shape_error(op, std::string(name) + " is undefined; expected " + wanted.str());
  if (!(p.shape() == wanted)) {
    shape_error(op, std::string(name) + "=" + p.shape().str() + "; expected " + wanted.str());
  }
  if (p.dtype() != dtype) shape_error(op, std::string(name) + " is " + name_of(p.dtype()));
}

// The initial state's rows in time order, in front of a [B+T, H] buffer.
Tensor state_buffer(const char* op, const char* name, const Tensor& initial, const LayerRun& run) {
  Tensor buffer = Tensor::empty({run.B + run.T, run.H}, run.w_hh.dtype());
  if (initial.defined()) {
    check_parameter(op, name, initial, {run.B, run.H}, run.w_hh.dtype());
    copy_rows(dense(initial), buffer, run.B,
              [&](int64_t r) { return std::pair(r, run.time->order[static_cast<size_t>(r)]); });
  } else {
    Tensor head = buffer.as_strided({run.B, run.H}, {run.H, 1}, 0);
    head.fill(0);
  }
  return buffer;
}

// Sequences [begin, end) in time order, which walk through it together.
struct Walk {
  int64_t begin = 0, end = 0;
};

// Those of them that reach step t.
int64_t active(const LayerRun& run, const Walk& r, int64_t t) { return std::min(r.end, run.time->count(t)) - r.begin; }

// Sequences that walk together: few enough for all threads to have some, enough for a product to be worth it. All of
// them when the weights are too large to be read again by every block. A matter of the sizes alone.
int64_t walking_together(const LayerRun& run) {
  constexpr int64_t kCached = 1 << 18;  // floats: 1 MiB
  if (run.gate_width() * run.H > kCached || run.B <= 16) return run.B;
  return std::min<int64_t>(32, (run.B + 1) / 2);
}

// fn(walk) for every block.
template <class Fn>
void for_walks(const LayerRun& run, const Fn& fn) {
  const int64_t block = std::max<int64_t>(1, walking_together(run));
  parallel_blocks(run.B, block, [&](int64_t begin, int64_t end) { fn(Walk{begin, end}); });
}

Tensor transposed(const Tensor& w) {
  const int64_t R = w.dim(0), C = w.dim(1);
  Tensor out = Tensor::empty({C, R}, w.dtype());
  dispatch(w.dtype(), [&](auto t) {
    using T = decltype(t);
    const T* from = w.data<T>();
    T* to = out.data<T>();
    constexpr int64_t kSide = 16;
    parallel_blocks(R, 4 * kSide, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; r += kSide) {
        for (int64_t c = 0; c < C; c += kSide) {
          for (int64_t j = c; j < std::min(C, c + kSide); ++j) {
            for (int64_t i = r; i < std::min(end, r + kSide); ++i) to[j * R + i] = from[i * C + j];
          }
        }
      }
    });
  });
  return out;
}

template <class T>
void forward(LayerRun& run, int64_t t, const Walk& r) {
  const int64_t n = active(run, r, t), H = run.H, G = run.gate_width();
  const int64_t at = run.first(t) + r.begin, before = run.previous(t) + r.begin, after = run.current(t) + r.begin;
  if (n <= 0) return;
  if (run.kind == CellKind::lstm) {
    multiply<T>({n, G, H}, matrix<const T>(run.h, before), matrix<const T>(run.w_hh_t), matrix<T>(run.gates, at), true);
    const kernels::LstmStep<T> step{.rows = n,
                                    .H = H,
                                    .gates = matrix<T>(run.gates, at),
                                    .c_prev = matrix<const T>(run.c, before),
                                    .c = matrix<T>(run.c, after),
                                    .h = matrix<T>(run.h, after)};
    kernels::lstm_step(step);
    return;
  }
  multiply<T>({n, G, H}, matrix<const T>(run.h, before), matrix<const T>(run.w_hh_t), matrix<T>(run.h_gate, r.begin),
              false, run.b_hh.data<T>());
  const kernels::GruStep<T> step{.rows = n,
                                 .H = H,
                                 .x_gates = matrix<const T>(run.gates, at),
                                 .h_gates = matrix<const T>(run.h_gate, r.begin),
                                 .h_prev = matrix<const T>(run.h, before),
                                 .saved = run.training ? matrix<T>(run.saved, at) : RowMajor<T>{},
                                 .h = matrix<T>(run.h, after)};
  kernels::gru_step(step);
}

template <class T>
void backward(const LayerRun& run, LayerGradients& g, int64_t t, const Walk& r) {
  const int64_t n = active(run, r, t), H = run.H, G = run.gate_width();
  const int64_t at = run.first(t) + r.begin, before = run.previous(t) + r.begin, after = run.current(t) + r.begin;
  if (n <= 0) return;
  if (run.kind == CellKind::lstm) {
    const kernels::LstmStepBackward<T> step{.rows = n,
                                            .H = H,
                                            .gates = matrix<const T>(run.gates, at),
                                            .c_prev = matrix<const T>(run.c, before),
                                            .c = matrix<const T>(run.c, after),
                                            .d_h = matrix<const T>(g.d_h, r.begin),
                                            .d_c = matrix<const T>(g.d_c, r.begin),
                                            .d_gates = matrix<T>(g.d_x_gates, at),
                                            .d_c_prev = matrix<T>(g.d_c, r.begin)};
    kernels::lstm_step_backward(step);
    multiply<T>({n, H, G}, matrix<const T>(g.d_x_gates, at), matrix<const T>(run.w_hh), matrix<T>(g.d_h, r.begin),
                false);
    return;
  }
  const kernels::GruStepBackward<T> step{.rows = n,
                                         .H = H,
                                         .saved = matrix<const T>(run.saved, at),
                                         .h_prev = matrix<const T>(run.h, before),
                                         .d_h = matrix<const T>(g.d_h, r.begin),
                                         .d_x_gates = matrix<T>(g.d_x_gates, at),
                                         .d_h_gates = matrix<T>(g.d_h_gates, at),
                                         .d_h_prev = matrix<T>(g.d_h, r.begin)};
  kernels::gru_step_backward(step);
  multiply<T>({n, H, G}, matrix<const T>(g.d_h_gates, at), matrix<const T>(run.w_hh), matrix<T>(g.d_h, r.begin), true);
}

}  // namespace

Tensor take_rows(const Tensor& from, const std::vector<int64_t>& rows) {
  const auto n = static_cast<int64_t>(rows.size());
  Tensor to = Tensor::empty({n, from.dim(1)}, from.dtype());
  take_rows(from, rows, to);
  return to;
}

void take_rows(const Tensor& from, const std::vector<int64_t>& rows, Tensor& to) {
  copy_rows(from, to, static_cast<int64_t>(rows.size()),
            [&](int64_t i) { return std::pair(i, rows[static_cast<size_t>(i)]); });
}

Tensor place_rows(const Tensor& from, const std::vector<int64_t>& rows, int64_t first_row) {
  const auto n = static_cast<int64_t>(rows.size());
  Tensor to = Tensor::empty({n, from.dim(1)}, from.dtype());
  copy_rows(from, to, n, [&](int64_t i) { return std::pair(rows[static_cast<size_t>(i)], first_row + i); });
  return to;
}

std::vector<int64_t> LayerRun::last_rows(const Ragged& batch) const {
  std::vector<int64_t> at(static_cast<size_t>(B));
  for (int64_t r = 0; r < B; ++r) {
    const int64_t b = time->order[static_cast<size_t>(r)], length = batch.length(b);
    at[static_cast<size_t>(b)] = length == 0 ? r : current(length - 1) + r;
  }
  return at;
}

LayerRun start_layer(const char* op, CellKind kind, const Ragged& batch, const RecurrentWeights& weights,
                     const RecurrentState& initial, bool training) {
  check_defined(op, weights.w_ih);
  check_defined(op, weights.w_hh);
  const int64_t H = weights.w_hh.rank() == 2 ? weights.w_hh.dim(1) : 0;
  const int64_t G = (kind == CellKind::lstm ? 4 : 3) * H;
  const DType dtype = weights.w_hh.dtype();
  check_parameter(op, "w_hh", weights.w_hh, {G, H}, dtype);
  check_parameter(op, "w_ih", weights.w_ih, {G, weights.w_ih.rank() == 2 ? weights.w_ih.dim(1) : 0}, dtype);
  check_parameter(op, "b_ih", weights.b_ih, {G}, dtype);
  check_parameter(op, "b_hh", weights.b_hh, {G}, dtype);
  LayerRun run;
  run.kind = kind;
  run.time = &batch.time();
  run.B = batch.sequences();
  run.T = batch.rows();
  run.H = H;
  run.w_ih = dense(weights.w_ih);
  run.w_hh = dense(weights.w_hh);
  run.w_hh_t = transposed(run.w_hh);
  run.b_ih = dense(weights.b_ih);
  run.b_hh = dense(weights.b_hh);
  run.training = training;
  run.h = state_buffer(op, "h", initial.h, run);
  run.gates = Tensor::empty({run.T, G}, dtype);
  if (kind == CellKind::lstm) {
    run.c = state_buffer(op, "c", initial.c, run);
    run.b_ih = run.b_ih.clone();
    dispatch(dtype, [&](auto t) {
      using T = decltype(t);
      add_to<T>(run.b_hh.data<T>(), run.b_ih.data<T>(), G);
    });
  } else {
    run.h_gate = Tensor::empty({run.B, G}, dtype);
    if (training) run.saved = Tensor::empty({run.T, 4 * H}, dtype);
  }
  return run;
}

void step_forward(LayerRun& run, int64_t t) {
  dispatch(run.w_hh.dtype(), [&](auto type) { forward<decltype(type)>(run, t, {0, run.B}); });
}

void walk_forward(LayerRun& run) {
  dispatch(run.w_hh.dtype(), [&](auto type) {
    for_walks(run, [&](const Walk& r) {
      for (int64_t t = 0; t < run.time->steps(); ++t) forward<decltype(type)>(run, t, r);
    });
  });
}

LayerGradients start_backward(const LayerRun& run, const Tensor& d_last_h, const Tensor& d_last_c) {
  const DType dtype = run.w_hh.dtype();
  const auto sorted = [&](const Tensor& d) {
    return d.defined() ? take_rows(dense(d), run.time->order) : Tensor::zeros({run.B, run.H}, dtype);
  };
  LayerGradients g;
  g.d_h = sorted(d_last_h);
  // What a layer saved is read once, by this backward pass: gradients take its place.
  g.d_x_gates = run.gates;
  if (run.kind == CellKind::lstm) {
    g.d_c = sorted(d_last_c);
  } else {
    g.d_h_gates = Tensor::empty({run.T, run.gate_width()}, dtype);
  }
  return g;
}

void step_backward(const LayerRun& run, LayerGradients& grads, int64_t t) {
  dispatch(run.w_hh.dtype(), [&](auto type) { backward<decltype(type)>(run, grads, t, {0, run.B}); });
}

void walk_backward(const LayerRun& run, LayerGradients& grads, const Tensor& d_out) {
  dispatch(run.w_hh.dtype(), [&](auto type) {
    using T = decltype(type);
    for_walks(run, [&](const Walk& r) {
      for (int64_t t = run.time->steps() - 1; t >= 0; --t) {
        const int64_t n = active(run, r, t);
        if (n > 0 && d_out.defined()) {
          add_to<T>(matrix<const T>(d_out, run.first(t) + r.begin).data, matrix<T>(grads.d_h, r.begin).data, n * run.H);
        }
        backward<T>(run, grads, t, r);
      }
    });
  });
}

Tensor previous_states(const LayerRun& run) {
  if (run.time->same_lengths) return run.h.as_strided({run.T, run.H}, {run.H, 1}, 0);
  std::vector<int64_t> at;
  at.reserve(static_cast<size_t>(run.T));
  for (int64_t t = 0; t < run.time->steps(); ++t) {
    for (int64_t r = 0; r < run.time->count(t); ++r) at.push_back(run.previous(t) + r);
  }
  return take_rows(run.h, at);
}

void weight_gradients(const LayerRun& run, const LayerGradients& g, const Tensor& d_input, const WeightSlots& at,
                      Grads& d) {
  const int64_t G = run.gate_width();
  const Tensor& d_hidden = run.kind == CellKind::lstm ? g.d_x_gates : g.d_h_gates;
  dispatch(run.w_hh.dtype(), [&](auto type) {
    using T = decltype(type);
    bool fresh = false;
    if (d.wants(at.w_hh)) {
      const Tensor before = previous_states(run);
      Tensor d_w = d.buffer(at.w_hh, fresh);
      weight_product<T>({G, run.H, run.T}, matrix<const T>(d_hidden), matrix<const T>(before), matrix<T>(d_w), !fresh);
    }
    const auto bias = [&](size_t slot, const Tensor& d_gates) {
      if (!d.wants(slot)) return;
      Tensor d_b = d.buffer(slot, fresh);
      kernels::sum_rows(kernels::SumRows<T>{d_gates.dim(0), G, d_gates.data<T>(), d_b.data<T>(), !fresh});
    };
    bias(at.b_ih, d_input);
    bias(at.b_hh, run.kind == CellKind::lstm ? d_input : d_hidden);
  });
}

Tensor in_batch_order(const Tensor& sorted, const TimeOrder& time) { return place_rows(sorted, time.order); }

}  // namespace qkv::rnn
