// Compiled for avx512 alone: nothing here may be inline and shared with code for other machines, or
// the linker could keep this copy for them. So: api.h, fixed-size types, intrinsics, and everything
// else in an unnamed namespace.
#include <immintrin.h>

#include "kernels/api.h"
#include "kernels/panel_layout.h"
#include "tensor/half.h"

namespace octavo::kernels {
namespace {

#include "kernels/cpu/avx512/vec.h"

// In this order, each using what stands before it.

#include "kernels/cpu/generic/float_ops.inl.h"

#include "kernels/cpu/generic/attention.inl.h"
#include "kernels/cpu/generic/panel.inl.h"

#include "kernels/cpu/generic/matmul_a8.inl.h"
#include "kernels/cpu/generic/matmul_f32.inl.h"

}  // namespace

extern const Ops kOps_avx512;
const Ops kOps_avx512 = {"avx512", matmul_a8, matmul_f32, nullptr,  quantize_a8, rms_norm,
                         silu_mul, add,       rope,       store_kv, attention,   merge_attention};

}  // namespace octavo::kernels
