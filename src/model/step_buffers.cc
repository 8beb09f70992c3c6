#include "model/step_buffers.h"

#include <algorithm>

namespace octavo {
namespace {

// 256 KB: stays in a core's second-level cache. More if one panel of all tokens needs it.
constexpr int64_t kProductFloats = int64_t{1} << 16;

// Logits of this many bytes at most in one call bound the caller's buffer; but reading the head
// once for many sequences is worth a little more, and some rows must always fit.
constexpr int64_t kLogitsBytes = 16 << 20;
constexpr int64_t kMinLogitsRows = 16, kMaxLogitsRows = 64;

// Hands out 64-byte aligned parts of one range; with no base it only measures.
class Carver {
 public:
  explicit Carver(uint8_t* base) : base_(base) {}

  template <class T>
  void take(T*& out, int64_t count) {
    if (base_) out = reinterpret_cast<T*>(base_ + used_);
    used_ += (static_cast<size_t>(count) * sizeof(T) + 63) / 64 * 64;
  }
  size_t used() const { return used_; }

 private:
  uint8_t* base_;
  size_t used_ = 0;
};

int64_t whole_groups(int64_t rows) {
  return (rows + kernels::kA8Tokens - 1) / kernels::kA8Tokens * kernels::kA8Tokens;
}

// Whole blocks of 32 in whole groups of tokens, for the widest input.
void carve_rounded(Carver& c, kernels::A8& a8, const BufferShape& s, int64_t rows) {
  const int64_t blocks =
      (std::max({s.hidden, s.q_dim, s.intermediate}) + 31) / 32 * whole_groups(rows);
  for (int8_t** q : {&a8.q, &a8.q_low}) c.take(*q, 32 * blocks);
  c.take(a8.wide, blocks);
  for (float** scale : {&a8.d, &a8.s}) c.take(*scale, blocks);
  c.take(a8.s_half, 2 * blocks);
  c.take(a8.sum, 4 * blocks);
}

void carve_rows(Carver& c, RowBuffers& b, const BufferShape& s, int64_t rows) {
  c.take(b.normed, rows * s.hidden);
  carve_rounded(c, b.rounded, s, rows);
}

void carve_experts(Carver& c, ExpertBuffers& b, const BufferShape& s) {
  if (s.experts == 0) return;
  const int64_t choices = s.tokens * s.experts_used;
  // Every group begins on a multiple, and none is empty.
  b.max_rows = choices + std::min(choices, s.experts) * (kernels::kA8Tokens - 1);
  c.take(b.scores, s.tokens * logits_stride(static_cast<int>(s.experts)));
  for (int32_t** list : {&b.chosen, &b.places}) c.take(*list, choices);
  c.take(b.shares, choices);
  for (int32_t** list : {&b.first_rows, &b.counts, &b.active}) c.take(*list, s.experts);
  c.take(b.rows, b.max_rows * s.hidden);
  c.take(b.inner, b.max_rows * s.intermediate);
  carve_rounded(c, b.rounded, s, b.max_rows);
}

// Of up to three matrices that are multiplied with one input.
void carve_lora(Carver& c, LoraBuffers& b, const BufferShape& s) {
  if (s.lora_rank == 0) return;
  b.tokens = s.tokens;
  b.stride = (s.lora_rank + kernels::kPanelRows - 1) / kernels::kPanelRows * kernels::kPanelRows;
  c.take(b.shrunk, 3 * b.tokens * b.stride);
}

size_t carve(StepBuffers& b, const BufferShape& s, uint8_t* base) {
  Carver c(base);
  const int64_t n = s.tokens;
  c.take(b.residual, n * s.hidden);
  for (float** query : {&b.q, &b.attended}) c.take(*query, n * s.q_dim);
  for (float** key : {&b.k, &b.v}) c.take(*key, n * s.kv_dim);
  c.take(b.inner, n * s.intermediate);
  if (s.post_norms) c.take(b.projected, n * s.hidden);
  for (float** angle : {&b.cosines, &b.sines}) c.take(*angle, n * s.rope_angles);
  carve_experts(c, b.experts, s);
  carve_lora(c, b.lora, s);
  carve_rows(c, b.many, s, n);
  for (ThreadBuffers& thread : b.threads) {
    carve_rows(c, thread.few, s, std::min<int64_t>(n, kFewRows));
    c.take(thread.products, b.product_floats);
    c.take(thread.heads, (kernels::kMaxAttentionRows + 1) * kernels::kMaxHeadDim);
    if (s.lora_rank > 0) c.take(thread.deltas, kLoraDeltaFloats);
  }
  return c.used();
}

}  // namespace

BufferShape buffer_shape(const ModelConfig& c, int max_num_batched_tokens, int threads,
                         int max_lora_rank) {
  return {.tokens = max_num_batched_tokens,
          .hidden = c.hidden_size,
          .q_dim = int64_t{c.num_heads} * c.head_dim,
          .kv_dim = int64_t{c.num_kv_heads} * c.head_dim,
          .intermediate = c.intermediate_size,
          .rope_angles = int64_t{c.rope.dims} / 2 * (c.local_rope ? 2 : 1),
          .post_norms = c.architecture->post_norms,
          .experts = c.experts.count,
          .experts_used = c.experts.used,
          .lora_rank = max_lora_rank,
          .threads = threads};
}

int max_logits_rows(int vocab_size, int max_num_batched_tokens) {
  const int64_t rows =
      kLogitsBytes / (int64_t{logits_stride(vocab_size)} * static_cast<int64_t>(sizeof(float)));
  return static_cast<int>(
      std::min<int64_t>(std::clamp(rows, kMinLogitsRows, kMaxLogitsRows), max_num_batched_tokens));
}

size_t StepBuffers::bytes(const BufferShape& shape) {
  StepBuffers nothing(shape);
  return carve(nothing, shape, nullptr);
}

StepBuffers::StepBuffers(const BufferShape& shape)
    : threads(static_cast<size_t>(shape.threads)),
      product_floats(std::max({kProductFloats, 2 * kernels::kPanelRows * shape.tokens, shape.q_dim,
                               shape.intermediate})) {}

Result<StepBuffers> StepBuffers::allocate(const BufferShape& shape) {
  StepBuffers buffers(shape);
  OCTAVO_TRY(buffers.memory, AlignedBuffer::allocate(bytes(shape), AlignedBuffer::Use::sparse));
  carve(buffers, shape, buffers.memory.data());
  return buffers;
}

}  // namespace octavo
