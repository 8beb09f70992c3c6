// One row's block of a panel, value by value: slow, plain, and the definition of what a panel
// means.
#pragma once

#include <array>

#include "kernels/api.h"

namespace octavo::kernels {

struct RowBlock {  // w[i] = d * codes[i] + m, with d[0], m[0] for the first half of the block and
                   // [1] for the second
  std::array<int, kBlock> codes;  // offset already subtracted
  float d[2];
  float m[2];
  bool has_min;
};

// REQUIRES: a quantised type.
RowBlock read_row_block(const PanelMatrix& w, int64_t row, int64_t block);

}  // namespace octavo::kernels
