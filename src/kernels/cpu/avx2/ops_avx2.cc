// Compiled for avx2 alone: nothing here may be inline and shared with code for other machines, or
// the linker could keep this copy for them. So: api.h, fixed-size types, intrinsics, and everything
// else in an unnamed namespace.
#include <immintrin.h>

#include "kernels/api.h"
#include "kernels/panel_layout.h"
#include "tensor/half.h"

namespace octavo::kernels {
namespace {

#include "kernels/cpu/avx2/vec.h"

// In this order, each using what stands before it.

#include "kernels/cpu/generic/float_ops.inl.h"

#include "kernels/cpu/generic/attention_rows.inl.h"

#include "kernels/cpu/generic/attention_float.inl.h"
#include "kernels/cpu/generic/attention_int8.inl.h"

#include "kernels/cpu/generic/attention.inl.h"
#include "kernels/cpu/generic/kv_store.inl.h"
#include "kernels/cpu/generic/panel.inl.h"

#include "kernels/cpu/generic/matmul_a8.inl.h"
#include "kernels/cpu/generic/matmul_f32.inl.h"
#include "kernels/cpu/generic/probe.inl.h"

}  // namespace

extern const Ops kOps_avx2;
const Ops kOps_avx2 = {
    .isa = "avx2",
    .matmul_a8 = matmul_a8,
    .matmul_f32 = matmul_f32,
    .matmul_bf16 = nullptr,
    .quantize_a8 = quantize_a8,
    .rms_norm = rms_norm,
    .layer_norm = layer_norm,
    .silu_mul = silu_mul,
    .gelu_mul = gelu_mul,
    .gelu_erf = gelu_erf,
    .add = add,
    .add_scaled = add_scaled,
    .softcap = softcap,
    .rope = rope,
    .store_kv = store_kv,
    .attention = attention,
    .merge_attention = merge_attention,
    .probes = {probe_read, probe_int8, probe_f32},
};

}  // namespace octavo::kernels
