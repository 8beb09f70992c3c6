// The part of StepRunner that adds adapters to products: first all of A x, a few numbers per row,
// then, with the panels of each product, B times those. Float throughout, and every row by itself:
// which adapters the others have changes nothing.
#include <algorithm>

#include "model/lora.h"
#include "model/step_runner.h"
#include "model/step_slices.h"

namespace octavo {
namespace {

using detail::slice;

constexpr int64_t kRows = kernels::kPanelRows;
constexpr int64_t kTileRows = 32;  // of one share of a thread

}  // namespace

float* StepRunner::shrunk(size_t linear, int64_t row) const {
  const LoraBuffers& b = buffers_.lora;
  return b.shrunk + (static_cast<int64_t>(linear) * b.tokens + row) * b.stride;
}

void StepRunner::shrink(const StepOp& op) {
  const int64_t tiles = (op.rows + kTileRows - 1) / kTileRows;
  team_.each(op.num_linears * tiles, [&](int64_t i) {
    if (!op.in) prepare_few();
    const int64_t first = i % tiles * kTileRows;
    shrink_rows(op, static_cast<size_t>(i / tiles), first,
                std::min<int64_t>(first + kTileRows, op.rows));
  });
}

void StepRunner::shrink_rows(const StepOp& op, size_t linear, int64_t first, int64_t last) {
  const float* in = input_of(op).floats;
  for (const LoraRun& run : run_.inputs.lora_runs(op.kept)) {
    const int64_t begin = std::max<int64_t>(first, run.first_row);
    const int64_t end = std::min<int64_t>(last, run.first_row + run.num_rows);
    const LoraMatrix* lora = run.adapter->find(op.layer, op.targets[linear]);
    if (begin >= end || !lora) continue;
    const kernels::PanelMatrix a = lora->a.view();
    float* out = shrunk(linear, begin);
    const int64_t stride = buffers_.lora.stride;
    ops_.matmul_f32(a, 0, a.panels(), in + begin * op.cols, op.cols, end - begin, out, stride);
    for (int64_t row = 0; row < end - begin; ++row)
      for (int64_t i = 0; i < a.rows; ++i) out[row * stride + i] *= lora->scale;
  }
}

void StepRunner::add_adapters(const StepOp& op, size_t linear, int64_t begin, int64_t end, float* y,
                              int64_t y_stride) {
  for (const LoraRun& run : run_.inputs.lora_runs(op.kept)) {
    const LoraMatrix* lora = run.adapter->find(op.layer, op.targets[linear]);
    if (!lora) continue;
    const int64_t tile = std::min<int64_t>(run.num_rows, kTileRows);
    const int64_t most = kLoraDeltaFloats / (tile * kRows);
    for (int64_t first = run.first_row; first < run.first_row + run.num_rows; first += tile) {
      const int64_t rows = std::min<int64_t>(tile, run.first_row + run.num_rows - first);
      for (int64_t from = begin; from < end; from += most) {
        const int64_t panels = std::min(most, end - from), width = panels * kRows;
        ops_.matmul_f32(slice(lora->b.view(), from, from + panels), 0, panels,
                        shrunk(linear, first), buffers_.lora.stride, rows, mine_.deltas, width);
        for (int64_t row = 0; row < rows; ++row)
          ops_.add(y + (first + row) * y_stride + (from - begin) * kRows,
                   mine_.deltas + row * width, width);
      }
    }
  }
}

}  // namespace octavo
