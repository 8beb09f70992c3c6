// The operations a forward pass is made of, on raw pointers and plain structs. One table of
// functions per instruction set (ISA); every function works on the range it is given, on the
// calling thread, and allocates nothing.
//
// I1: for one ISA, a result depends on its own inputs only: never on how many tokens, rows or
// panels a call covers. So each output element is summed in one fixed order, whatever the tile.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kv/kv_type.h"
#include "tensor/dtype.h"

namespace octavo::kernels {

constexpr int kPanelRows = 16;  // output rows per panel: one 64-byte line holds 16 rows x 4 bytes
constexpr int kBlock = 32;      // inputs that share one activation scale
constexpr int kMaxQ = 127;  // largest rounded activation; -128 would overflow 16-bit sums of pairs

// A weight matrix in panels of 16 output rows (P16); see panel_layout.h for the bytes. Owns
// nothing.
struct PanelMatrix {
  DType type = DType::f32;
  int64_t rows = 0;  // outputs; the last panel is padded with zero rows
  int64_t cols = 0;  // inputs; a multiple of 32 for quantised types
  size_t panel_bytes = 0;
  const uint8_t* data = nullptr;

  int64_t panels() const { return (rows + kPanelRows - 1) / kPanelRows; }
};

// Activations rounded per 32 inputs ("A8"), scales and sums apart: x = d * (q + q_low / 128).
// q alone is int8 rounding. The few blocks of a row that hold its largest values, whose rounding
// would hurt most, are "wide": they use q_low as well, 7 more bits (docs/adr/0002-wide-blocks.md).
// Elsewhere q_low is zero.
//
// Eight tokens lie side by side, so that a kernel working on them needs one pointer per array:
// block b of token t is number i = (t / 8 * blocks + b) * 8 + t % 8. Arrays hold a multiple of
// eight tokens; what lies in the places of missing ones is read, and has no effect.
struct A8 {
  int8_t* q;      // [i][32]  -127..127
  int8_t* q_low;  // [i][32]  -64..63
  uint8_t* wide;  // [i]      1: the block is wide
  float* d;       // [i]      scale; NaN if any x is not finite
  float* s;       // [i]      d * sum of q + q_low / 128 over the block
  float* s_half;  // [i][2]   the same over halves of 16
  int32_t* sum;   // [i][4]   sum of q over the block, over its first half, of q_low over both
  int64_t cols;   // multiple of 32
};
constexpr int kA8Tokens = 8;

// A block is wide if the square of its largest |x| is more than this times the mean of those
// squares over the row.
constexpr float kWideThreshold = 3.0f;

// Products with A8 add, for every kChunk blocks of inputs, first the terms of q in order, then
// those of q_low. The unpacked codes of so many blocks of a panel (12 KB) fit the first-level
// cache.
constexpr int kChunk = 24;

// Where one layer's keys and values lie. All strides in bytes. K of (block b, head h) begins at
// base + b * block_stride + h * head_stride, V is v_offset further; kv/kv_layout.h says what is in
// them.
struct KvLayer {
  uint8_t* base;
  size_t block_stride;
  size_t head_stride;
  size_t v_offset;
  int block_size;
  int head_dim;  // multiple of 16
  KvType type;
};

// One token of an item whose tokens come from several sequences.
struct SharedToken {
  int position;    // in its sequence
  float* partial;  // [group][head_dim + 2]: where its results of the part go
};

// Attention of some consecutive tokens of one sequence over one KV head: the query heads that share
// it. Context is split every 256 positions of the sequence and the parts are merged in ascending
// order.
struct AttentionItem {
  const KvLayer* kv;
  const int32_t* block_table;  // block of positions [i*block_size, (i+1)*block_size)
  int kv_head;
  int group;           // query heads per KV head
  int tokens;          // rows = tokens * group <= kMaxAttentionRows
  int first_position;  // position of the first token; token i sees positions up to first_position+i
  int window;          // of these the last `window` only, its own included; 0: all
  float scale;
  const float*
      q;  // first token, first query head of the group: [tokens] q_stride apart, [group][head_dim]
  int64_t q_stride;  // floats
  float* out;        // like q
  int64_t out_stride;
  // Split over several calls, which may run at once: each computes one part into `partial`, and
  // merge_attention, when all are done, joins them. The same bits as in one call.
  int part;        // its number, or kAllParts
  float* partial;  // [parts][rows][head_dim + 2], or nullptr
  // With kAllParts: so many parts are in `partial` already and are joined to, not computed.
  int parts_done = 0;
  // Not nullptr: [tokens] of several sequences, by ascending position, for one part that lies in
  // the same blocks for all of them, before all of their positions. first_position, partial and out
  // are not used.
  const SharedToken* shared = nullptr;
  float score_cap = 0;  // not 0: scores become cap * tanh(score / cap)
  // What this thread will probably compute after it, or nullptr: its keys are fetched meanwhile.
  const AttentionItem* next = nullptr;
  // Positions that each token sees more than the one before. 0: all see up to first_position, which
  // is then that of the sequence's last token, as in an encoder.
  int step = 1;
};

constexpr int kAllParts = -1;

// 8 tokens of 3 query heads, 6 of 4, 3 of 8: whole tiles of 8 rows. More would take K and V from
// the second cache less often, which is not what bounds a prompt.
constexpr int kMaxAttentionRows = 24;
constexpr int kMaxHeadDim = 256;
constexpr int kSplit = 256;  // positions per part; block sizes divide it

// Loops that show what the machine can do at most, for `octavo bench latency`. Each returns
// something that depends on all its work.
struct Probes {
  // Reads n bytes, a multiple of 512, once and in order.
  uint64_t (*read)(const uint8_t* bytes, size_t n);

  // 16 * kProbeRound dot products of four 8-bit values a round, in the sequence of instructions
  // that matmul_a8 uses, all operands in registers.
  int32_t (*int8)(int64_t rounds);

  // 16 * kProbeRound float multiply-adds a round.
  float (*f32)(int64_t rounds);
};
constexpr int kProbeRound = 12;
constexpr int64_t kProbeInt8MacsPerRound = 64 * kProbeRound;
constexpr int64_t kProbeF32MacsPerRound = 16 * kProbeRound;

struct Ops {
  const char* isa;

  // y[t*y_stride + r] for rows r of panels [panel_begin, panel_end). y_stride is a multiple of 16
  // and every panel's 16 results are written, padding included. matmul_a8 takes quantised types
  // only, matmul_f32 all.
  void (*matmul_a8)(const PanelMatrix& w, int64_t panel_begin, int64_t panel_end, const A8& x,
                    int64_t tokens, float* y, int64_t y_stride);
  void (*matmul_f32)(const PanelMatrix& w, int64_t panel_begin, int64_t panel_end, const float* x,
                     int64_t x_stride, int64_t tokens, float* y, int64_t y_stride);

  // The same with x rounded to bf16, for bf16 weights; nullptr where the machine has no such dot
  // product. An output is one chain over pairs of inputs in ascending order.
  void (*matmul_bf16)(const PanelMatrix& w, int64_t panel_begin, int64_t panel_end, const float* x,
                      int64_t x_stride, int64_t tokens, float* y, int64_t y_stride);

  // Row t of out from cols floats at x.
  void (*quantize_a8)(const float* x, const A8& out, int64_t t);

  // y = x / sqrt(mean(x^2) + eps) * weight. n is a multiple of 16. y may be x.
  void (*rms_norm)(const float* x, const float* weight, float eps, int64_t n, float* y);

  // y = (x - mean) / sqrt(mean((x - mean)^2) + eps) * weight + bias. n is a multiple of 16. y may
  // be x.
  void (*layer_norm)(const float* x, const float* weight, const float* bias, float eps, int64_t n,
                     float* y);

  // y = silu(gate) * up. n is a multiple of 16. y may be gate or up.
  void (*silu_mul)(const float* gate, const float* up, int64_t n, float* y);

  // y = gelu(gate) * up, gelu with the tanh that most models use for it. n is a multiple of 16. y
  // may be gate or up.
  void (*gelu_mul)(const float* gate, const float* up, int64_t n, float* y);

  // y = x (1 + erf(x / sqrt 2)) / 2. n is a multiple of 16. y may be x.
  void (*gelu_erf)(const float* x, int64_t n, float* y);

  // x += y. n is a multiple of 16.
  void (*add)(float* x, const float* y, int64_t n);

  // x += scale * y. n is a multiple of 16.
  void (*add_scaled)(float* x, const float* y, float scale, int64_t n);

  // x = cap * tanh(x / cap), which stays between -cap and cap. What is not finite becomes NaN, so
  // that it is not hidden. n is a multiple of 16.
  void (*softcap)(float* x, float cap, int64_t n);

  // Rotates pairs of each head's first 2*half dims by the angles whose cosines and sines are given.
  // interleaved: pairs are (2i, 2i+1), as in llama GGUF files; else (i, i+half).
  void (*rope)(float* x, int heads, int head_dim, int half, bool interleaved, const float* cosines,
               const float* sines);

  // Rounds one token's key and value of one KV head to the cache's type and writes them at its
  // position.
  void (*store_kv)(const KvLayer& kv, int32_t block, int kv_head, int position_in_block,
                   const float* k, const float* v);

  // Into item.out, or the item's part of item.partial.
  void (*attention)(const AttentionItem& item);

  // From the parts in item.partial to item.out.
  void (*merge_attention)(const AttentionItem& item);

  Probes probes;
};

}  // namespace octavo::kernels
