// Parts of matrices and of rounded rows, for the files of StepRunner.
#pragma once

#include "kernels/api.h"

namespace octavo::detail {

// Panels [begin, end) as a matrix of their own.
inline kernels::PanelMatrix slice(kernels::PanelMatrix w, int64_t begin, int64_t end) {
  w.data += begin * static_cast<int64_t>(w.panel_bytes);
  w.rows = (end - begin) * kernels::kPanelRows;
  return w;
}

inline kernels::A8 with_cols(kernels::A8 rounded, int64_t cols) {
  rounded.cols = cols;
  return rounded;
}

// Rows from `row` on, a multiple of kA8Tokens.
inline kernels::A8 from_row(kernels::A8 rounded, int64_t row) {
  const int64_t i = row * (rounded.cols / kernels::kBlock);
  rounded.q += i * kernels::kBlock;
  rounded.q_low += i * kernels::kBlock;
  rounded.wide += i;
  rounded.d += i;
  rounded.s += i;
  rounded.s_half += 2 * i;
  rounded.sum += 4 * i;
  return rounded;
}

}  // namespace octavo::detail
