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

void carve_rows(Carver& c, RowBuffers& b, const BufferShape& s, int64_t rows) {
  c.take(b.normed, rows * s.hidden);
  // Whole blocks of 32 in whole groups of tokens, for the widest input.
  const int64_t blocks =
      (std::max({s.hidden, s.q_dim, s.intermediate}) + 31) / 32 *
      ((rows + kernels::kA8Tokens - 1) / kernels::kA8Tokens * kernels::kA8Tokens);
  for (int8_t** q : {&b.rounded.q, &b.rounded.q_low}) c.take(*q, 32 * blocks);
  c.take(b.rounded.wide, blocks);
  for (float** scale : {&b.rounded.d, &b.rounded.s}) c.take(*scale, blocks);
  c.take(b.rounded.s_half, 2 * blocks);
  c.take(b.rounded.sum, 4 * blocks);
}

size_t carve(StepBuffers& b, const BufferShape& s, uint8_t* base) {
  Carver c(base);
  const int64_t n = s.tokens;
  c.take(b.residual, n * s.hidden);
  for (float** query : {&b.q, &b.attended}) c.take(*query, n * s.q_dim);
  for (float** key : {&b.k, &b.v}) c.take(*key, n * s.kv_dim);
  c.take(b.inner, n * s.intermediate);
  for (float** angle : {&b.cosines, &b.sines}) c.take(*angle, n * s.rope_pairs);
  carve_rows(c, b.many, s, n);
  for (ThreadBuffers& thread : b.threads) {
    carve_rows(c, thread.few, s, std::min<int64_t>(n, kFewRows));
    c.take(thread.products, b.product_floats);
    c.take(thread.heads, (kernels::kMaxAttentionRows + 1) * kernels::kMaxHeadDim);
  }
  return c.used();
}

}  // namespace

BufferShape buffer_shape(const ModelConfig& c, int max_num_batched_tokens, int threads) {
  return {.tokens = max_num_batched_tokens,
          .hidden = c.hidden_size,
          .q_dim = int64_t{c.num_heads} * c.head_dim,
          .kv_dim = int64_t{c.num_kv_heads} * c.head_dim,
          .intermediate = c.intermediate_size,
          .rope_pairs = c.rope.dims / 2,
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
      product_floats(std::max(kProductFloats, 2 * kernels::kPanelRows * shape.tokens)) {}

Result<StepBuffers> StepBuffers::allocate(const BufferShape& shape) {
  StepBuffers buffers(shape);
  OCTAVO_TRY(buffers.memory, AlignedBuffer::allocate(bytes(shape), AlignedBuffer::Use::sparse));
  carve(buffers, shape, buffers.memory.data());
  return buffers;
}

}  // namespace octavo
