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
#include "model/step_inputs.h"
#include "model/step_profile.h"
#include "model/step_program.h"
#include "model/step_runner.h"
#include "model/thread_count.h"
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
  // Positions that will be asked for; 0: the model's context length. Longrope and
  // dynamic scaling have other frequencies for more than the model was first trained on, and all
  // positions get those.
  int max_model_len = 0;
  int max_num_batched_tokens = 512;
  int max_lora_rank = 0;  // of adapters that sequences may have; 0: none
  // Blocks that sequences of a step share are read once for all of them. Changes no bit.
  bool shared_prefix_attention = true;
  bool reuse_steps = true;   // false: every step is recorded anew
  bool all_threads = false;  // true: on every step, however small, for tests
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
  void hidden(std::span<const int> rows, float* out) override;
  void copy_block(BlockId from, BlockId to) override { kv_.copy_block(from, to); }

  // Times every following step into *profile, which must outlive its use; nullptr: no timing.
  void set_profile(StepProfile* profile) { profile_ = profile; }

  // For reports.
  const ModelWeights& weights() const { return weights_; }
  const KvLayout& kv_layout() const { return kv_.layout(); }
  bool rounds_activations(const kernels::PanelMatrix& w) const;  // products with it are 8-bit
  int num_recorded_steps() const { return programs_.num_recorded(); }

 private:
  Transformer(ModelConfig config, ModelWeights weights, const kernels::Ops& ops, ThreadPool& pool,
              const TransformerOptions& options, KvStorage kv)
      : config_(std::move(config)),
        weights_(std::move(weights)),
        ops_(ops),
        pool_(pool),
        rounds_(options.dtype == ComputeType::automatic),
        all_threads_(options.all_threads),
        kv_(std::move(kv)),
        programs_(options.reuse_steps) {}

  Result<void> allocate(const TransformerOptions& options);
  void find_kept(std::span<const int> rows);
  StepRun prepare_run();
  int threads_of(const StepCost& cost) const {
    return all_threads_ ? pool_.size() : threads_for(cost, pool_.size());
  }
  StepCost cost_of(const ForwardBatch& batch, const StepProgram& program) const;
  int number_of(std::span<const int> skipped_layers);

  ModelConfig config_;
  ModelWeights weights_;
  const kernels::Ops& ops_;
  ThreadPool& pool_;
  bool rounds_;  // quantised weights are multiplied by rounded activations
  bool all_threads_;
  KvStorage kv_;
  ModelLimits limits_;
  std::vector<RopeTable> ropes_;  // of layers that see all, then of those with a window
  StepCost layers_cost_;          // of one token through all layers, without attention
  StepBuffers buffers_;
  StepInputs inputs_;
  StepPrograms programs_;
  std::vector<std::vector<int>> layer_sets_;  // that steps have skipped
  std::vector<int> head_rows_;                // of the residual, for logits() and hidden()
  StepProfile* profile_ = nullptr;
};

}  // namespace octavo
