// The one forward pass of all families, driven by a ModelConfig, over a ragged batch and a paged KV
// cache. Owns the weights, the cache's memory and the buffers of a step; borrows the thread pool.
#pragma once

#include <memory>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "kernels/api.h"
#include "model/kv_storage.h"
#include "model/model.h"
#include "model/model_config.h"
#include "model/step_buffers.h"
#include "model/step_profile.h"
#include "model/weights.h"

namespace octavo {

// What activations are computed in.
enum class ComputeType : uint8_t {
  automatic,  // int8 activations for quantised weights, fp32 for the rest
  float32,    // fp32 activations for all weights: exact, slower
};

struct TransformerOptions {
  ComputeType dtype = ComputeType::automatic;
  KvType kv_cache_dtype = KvType::f16;
  int block_size = 32;
  int num_blocks = 0;
  int max_num_batched_tokens = 512;
};

class Transformer : public Model {
 public:
  // Errors: resource_exhausted, invalid_argument (options that cannot hold).
  static Result<std::unique_ptr<Transformer>> create(ModelConfig config, ModelWeights weights,
                                                     const kernels::Ops& ops, ThreadPool& pool,
                                                     const TransformerOptions& options);

  const ModelLimits& limits() const override { return limits_; }
  bool forward(const ForwardBatch& batch) override;
  void logits(std::span<const int> rows, float* out) override;
  void copy_block(BlockId from, BlockId to) override { kv_.copy_block(from, to); }

  // Times every following step into *profile, which must outlive its use; nullptr: no timing.
  void set_profile(StepProfile* profile) { profile_ = profile; }

  // For reports.
  const ModelWeights& weights() const { return weights_; }
  const KvLayout& kv_layout() const { return kv_.layout(); }
  bool rounds_activations(const kernels::PanelMatrix& w) const;  // products with it are 8-bit

 private:
  Transformer(ModelConfig config, ModelWeights weights, const kernels::Ops& ops, ThreadPool& pool,
              ComputeType dtype, KvStorage kv)
      : config_(std::move(config)),
        weights_(std::move(weights)),
        ops_(ops),
        pool_(pool),
        dtype_(dtype),
        kv_(std::move(kv)) {}

  // A matrix product of a step: y[row][.] = W x[row].
  struct Product {
    const Linear* linear;
    float* y;
  };
  void lap(StepPart part) {
    if (profile_) profile_->lap(part);
  }
  void embed(const ForwardBatch& batch);
  void plan_positions(const ForwardBatch& batch);
  void plan_attention(const ForwardBatch& batch);
  void split_attention();
  void attend(const kernels::KvLayer& kv, int window);
  void attention_block(const LayerWeights& layer, const kernels::KvLayer& kv, int window,
                       int64_t tokens);
  int window_of(int layer) const {
    return config_.windows.empty() ? 0 : config_.windows[static_cast<size_t>(layer)];
  }
  void ffn_block(const LayerWeights& layer, int64_t tokens);
  void write_kv(const kernels::KvLayer& kv, int64_t row);
  void quantize_row(const float* x, int64_t cols, int64_t row);
  kernels::A8 a8(int64_t cols) const;
  void multiply(std::initializer_list<Product> products, const float* x, int64_t cols,
                int64_t tokens);
  void multiply_panels(const kernels::PanelMatrix& w, int64_t begin, int64_t end, const float* x,
                       int64_t cols, int64_t tokens, float* y);

  ModelConfig config_;
  ModelWeights weights_;
  const kernels::Ops& ops_;
  ThreadPool& pool_;
  ComputeType dtype_;
  KvStorage kv_;
  ModelLimits limits_;
  std::vector<float> frequencies_;  // of the rotary pairs
  StepBuffers buffers_;
  StepProfile* profile_ = nullptr;

  // Of the current batch.
  std::vector<int> position_;    // per row
  std::vector<int32_t> block_;   // per row: block that its K and V go to
  std::vector<int32_t> tables_;  // block tables of all sequences, end to end
  std::vector<kernels::AttentionItem> items_;
  std::vector<kernels::AttentionItem> part_items_;  // of the same work in parts, or empty
  std::vector<float> partials_;
};

}  // namespace octavo
