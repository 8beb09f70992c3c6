// The encoders of single blocks, for quantize_row().
#pragma once

#include "tensor/blocks.h"

namespace octavo {

// values: as many as the block has. All of the block is written.
void encode(const float* values, BlockQ4_0& block);
void encode(const float* values, BlockQ4_1& block);
void encode(const float* values, BlockQ5_0& block);
void encode(const float* values, BlockQ5_1& block);
void encode(const float* values, BlockQ8_0& block);
void encode(const float* values, BlockQ4_K& block);
void encode(const float* values, BlockQ5_K& block);
void encode(const float* values, BlockQ6_K& block);

}  // namespace octavo
