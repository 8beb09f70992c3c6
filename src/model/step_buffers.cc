#include "model/step_buffers.h"

#include <algorithm>

namespace octavo {
namespace {

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

size_t carve(StepBuffers& b, const StepShape& s, uint8_t* base) {
  Carver c(base);
  const int64_t n = s.tokens;
  for (float** hidden : {&b.residual, &b.normed, &b.projected}) c.take(*hidden, n * s.hidden);
  for (float** query : {&b.q, &b.attended}) c.take(*query, n * s.q_dim);
  for (float** key : {&b.k, &b.v}) c.take(*key, n * s.kv_dim);
  for (float** inner : {&b.gate, &b.up}) c.take(*inner, n * s.intermediate);
  for (float** angle : {&b.cosines, &b.sines}) c.take(*angle, n * s.rope_pairs);
  // Whole blocks of 32 in whole groups of tokens, for the widest input.
  const int64_t blocks = (std::max({s.hidden, s.q_dim, s.intermediate}) + 31) / 32 *
                         ((n + kernels::kA8Tokens - 1) / kernels::kA8Tokens * kernels::kA8Tokens);
  for (int8_t** q : {&b.rounded.q, &b.rounded.q_low}) c.take(*q, 32 * blocks);
  c.take(b.rounded.wide, blocks);
  for (float** scale : {&b.rounded.d, &b.rounded.s}) c.take(*scale, blocks);
  c.take(b.rounded.s_half, 2 * blocks);
  c.take(b.rounded.sum, 4 * blocks);
  return c.used();
}

}  // namespace

StepShape step_shape(const ModelConfig& c, int max_num_batched_tokens) {
  return {.tokens = max_num_batched_tokens,
          .hidden = c.hidden_size,
          .q_dim = int64_t{c.num_heads} * c.head_dim,
          .kv_dim = int64_t{c.num_kv_heads} * c.head_dim,
          .intermediate = c.intermediate_size,
          .rope_pairs = c.rope.dims / 2};
}

size_t StepBuffers::bytes(const StepShape& shape) {
  StepBuffers nothing;
  return carve(nothing, shape, nullptr);
}

Result<StepBuffers> StepBuffers::allocate(const StepShape& shape) {
  StepBuffers buffers;
  OCTAVO_TRY(buffers.memory, AlignedBuffer::allocate(bytes(shape), AlignedBuffer::Use::sparse));
  carve(buffers, shape, buffers.memory.data());
  return buffers;
}

}  // namespace octavo
