// The order of rows of query and key matrices in families whose rotary pairs GGUF puts side by
// side.
#pragma once

#include <cstdint>

namespace octavo {

// Where GGUF's row lies in a Hugging Face file: row r of a head is row r / 2 of its first half for
// even r, of its second for odd. head_rows is even.
inline int64_t hf_row_of(int64_t row, int64_t head_rows) {
  const int64_t head = row / head_rows, within = row % head_rows;
  return head * head_rows + within % 2 * (head_rows / 2) + within / 2;
}

}  // namespace octavo
