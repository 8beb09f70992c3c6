// Mixture of experts (MoE): the part of StepRunner that sends tokens through experts. Nothing here
// depends on which other tokens are there but the place of a row in its group, which no product's
// result depends on.
#include <algorithm>
#include <bitset>
#include <cmath>
#include <cstring>

#include "model/step_runner.h"
#include "model/step_slices.h"

namespace octavo {
namespace {

using detail::from_row;
using detail::slice;
using detail::with_cols;

constexpr int64_t kRows = kernels::kPanelRows;

// The `used` largest scores, largest first; of equal ones the first.
void choose_largest(const float* scores, const ExpertConfig& experts, int32_t* chosen) {
  std::bitset<kMaxExperts> taken;
  for (int i = 0; i < experts.used; ++i) {
    int best = -1;
    for (int e = 0; e < experts.count; ++e)
      if (!taken[static_cast<size_t>(e)] && (best < 0 || scores[e] > scores[best])) best = e;
    taken.set(static_cast<size_t>(best));
    chosen[i] = best;
  }
}

// Softmax over the chosen ones: what is left of a softmax over all when it is scaled to sum to 1.
void share_out(const float* scores, const int32_t* chosen, int used, float* shares) {
  float sum = 0;
  for (int i = 0; i < used; ++i) {
    shares[i] = std::exp(scores[chosen[i]] - scores[chosen[0]]);
    sum += shares[i];
  }
  for (int i = 0; i < used; ++i) shares[i] /= sum;
}

}  // namespace

// Rows are done whole. The router works in float whatever the activations are: a
// rounded score could pick another expert.
void StepRunner::route(const StepOp& op) {
  float* normed = buffers_.many.normed;
  const kernels::PanelMatrix w = op.linears[0]->weight.view();
  const int64_t stride = w.panels() * kRows;
  team_.share(op.rows, [&](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row)
      ops_.rms_norm(op.in + row * op.cols, op.weight, run_.config.norm_eps, op.cols,
                    normed + row * op.cols);
    ops_.matmul_f32(w, 0, w.panels(), normed + first * op.cols, op.cols, last - first,
                    buffers_.experts.scores + first * stride, stride);
    for (int64_t row = first; row < last; ++row) choose(row);
  });
}

void StepRunner::choose(int64_t row) {
  const ExpertConfig& experts = run_.config.experts;
  const ExpertBuffers& b = buffers_.experts;
  const float* scores = b.scores + row * logits_stride(experts.count);
  choose_largest(scores, experts, b.chosen + row * experts.used);
  share_out(scores, b.chosen + row * experts.used, experts.used, b.shares + row * experts.used);
}

// It counts, gives each expert its rows, and fills them in the order of the
// tokens.
void StepRunner::group(int rows) {
  const ExpertConfig& experts = run_.config.experts;
  const ExpertBuffers& b = buffers_.experts;
  const int choices = rows * experts.used;
  std::fill_n(b.counts, experts.count, 0);
  for (int i = 0; i < choices; ++i) ++b.counts[b.chosen[i]];
  int next = 0, num_active = 0;
  for (int e = 0; e < experts.count; ++e) {
    b.first_rows[e] = next;
    if (b.counts[e] > 0) b.active[num_active++] = e;
    next += (b.counts[e] + kernels::kA8Tokens - 1) / kernels::kA8Tokens * kernels::kA8Tokens;
    b.counts[e] = 0;
  }
  run_.num_active_experts.store(num_active, std::memory_order_release);
  for (int i = 0; i < choices; ++i) {
    const int e = b.chosen[i];
    b.places[i] = b.first_rows[e] + b.counts[e]++;
  }
}

void StepRunner::gather(const StepOp& op) {
  const ExpertBuffers& b = buffers_.experts;
  const kernels::A8 rounded = with_cols(b.rounded, op.cols);
  for_rows(int64_t{op.rows} * run_.config.experts.used, [&](int64_t i) {
    const float* from = buffers_.many.normed + i / run_.config.experts.used * op.cols;
    std::copy_n(from, op.cols, b.rows + b.places[i] * op.cols);
    if (op.rounds) ops_.quantize_a8(from, rounded, b.places[i]);
  });
}

// A thread that is late may see how many are active in a later layer, but then this phase is over.
template <class Body>
void StepRunner::for_expert_panels(int64_t panels_of_each, const Body& body) {
  const ExpertBuffers& b = buffers_.experts;
  const int64_t active = run_.num_active_experts.load(std::memory_order_acquire);
  team_.share(active * panels_of_each, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t panel = begin % panels_of_each;
      const int64_t count = std::min(panels_of_each - panel, end - begin);
      body(b.active[begin / panels_of_each], panel, panel + count);
      begin += count;
    }
  });
}

StepRunner::Input StepRunner::expert_input(int expert, const float* rows, int64_t cols) const {
  const ExpertBuffers& b = buffers_.experts;
  const int64_t first = b.first_rows[expert];
  return {rows + first * cols, from_row(with_cols(b.rounded, cols), first), cols, b.counts[expert]};
}

void StepRunner::expert_gate_up(const StepOp& op) {
  const ExpertBuffers& b = buffers_.experts;
  const kernels::PanelMatrix gate = op.linears[0]->weight.view();
  const kernels::PanelMatrix up = op.linears[1]->weight.view();
  const int64_t size = run_.config.intermediate_size, panels = size / kRows;
  for_expert_panels(panels, [&](int expert, int64_t begin, int64_t end) {
    const Input in = expert_input(expert, b.rows, op.cols);
    const int64_t most = std::max<int64_t>(1, buffers_.product_floats / (2 * in.rows * kRows));
    float* out = op.out[0] + b.first_rows[expert] * size;
    for (int64_t from = begin; from < end; from += most) {
      const int64_t to = std::min(from + most, end), width = (to - from) * kRows;
      const int64_t at = expert * panels + from;
      float* gates = mine_.products;
      float* ups = mine_.products + in.rows * width;
      multiply_panels(slice(gate, at, at + to - from), in, gates, width);
      multiply_panels(slice(up, at, at + to - from), in, ups, width);
      for (int64_t row = 0; row < in.rows; ++row)
        activate(op, gates + row * width, ups + row * width, width,
                 out + row * size + from * kRows);
    }
  });
}

void StepRunner::expert_round(const StepOp& op) {
  const ExpertBuffers& b = buffers_.experts;
  const kernels::A8 rounded = with_cols(b.rounded, op.cols);
  for_rows(int64_t{op.rows} * run_.config.experts.used, [&](int64_t i) {
    ops_.quantize_a8(b.inner + b.places[i] * op.cols, rounded, b.places[i]);
  });
}

void StepRunner::expert_down(const StepOp& op) {
  const ExpertBuffers& b = buffers_.experts;
  const kernels::PanelMatrix w = op.linears[0]->weight.view();
  const int64_t hidden = run_.config.hidden_size, panels = hidden / kRows;
  for_expert_panels(panels, [&](int expert, int64_t begin, int64_t end) {
    multiply_panels(slice(w, expert * panels + begin, expert * panels + end),
                    expert_input(expert, b.inner, op.cols),
                    b.rows + b.first_rows[expert] * hidden + begin * kRows, hidden);
  });
}

// In the order of the token's choices, which is its own.
void StepRunner::combine(const StepOp& op) {
  const ExpertBuffers& b = buffers_.experts;
  const int used = run_.config.experts.used;
  const int64_t hidden = run_.config.hidden_size;
  for_rows(op.rows, [&](int64_t row) {
    for (int i = 0; i < used; ++i) {
      const float share = b.shares[row * used + i] * run_.config.residual_scale;
      const float* from = b.rows + b.places[row * used + i] * hidden;
      float* to = buffers_.residual + row * hidden;
      for (int64_t d = 0; d < hidden; ++d) to[d] += share * from[d];
    }
  });
}

}  // namespace octavo
