// The operations that only encoders have.
#include <algorithm>

#include "model/step_runner.h"
#include "model/step_slices.h"

namespace octavo {

void StepRunner::finish_encoder_embedding(int64_t row, float* x) {
  const EncoderWeights& w = run_.weights.encoder;
  const int64_t hidden = run_.config.hidden_size;
  const int64_t position = run_.inputs.places()[static_cast<size_t>(row)].position;
  ops_.add(x, w.positions.data() + position * hidden, hidden);
  ops_.layer_norm(x, w.norm.data(), w.norm_bias.data(), run_.config.norm_eps, hidden, x);
}

void StepRunner::layer_norm(const StepOp& op) {
  for_rows(op.rows, [&](int64_t row) {
    float* x = buffers_.residual + row * op.cols;
    ops_.layer_norm(x, op.weight, op.bias, run_.config.norm_eps, op.cols, x);
  });
}

void StepRunner::up(const StepOp& op) {
  constexpr int64_t kRows = kernels::kPanelRows;
  const kernels::PanelMatrix w = op.linears[0]->weight.view();
  const int64_t stride = w.panels() * kRows;
  const int64_t most = std::max<int64_t>(1, buffers_.product_floats / (op.rows * kRows));
  share_panels(op, w.panels(), [&](int64_t begin, int64_t end) {
    for (int64_t from = begin; from < end; from += most) {
      const int64_t to = std::min(from + most, end), width = (to - from) * kRows;
      multiply_panels(detail::slice(w, from, to), input_of(op), mine_.products, width);
      lap(StepPart::gate_up);
      add_bias(*op.linears[0], from * kRows, width, op.rows, mine_.products, width);
      for (int64_t row = 0; row < op.rows; ++row)
        ops_.gelu_erf(mine_.products + row * width, width, op.out[0] + row * stride + from * kRows);
      lap(StepPart::activation);
    }
  });
}

}  // namespace octavo
