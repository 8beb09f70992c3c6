#include "model/transformer.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/lora.h"

namespace octavo {
namespace {

Result<void> check_options(const TransformerOptions& options) {
  if (options.max_num_batched_tokens < 1 || options.max_num_batched_tokens > (1 << 20))
    return fail(ErrorCode::invalid_argument,
                fmt::format("max_num_batched_tokens is {}; it must be 1 to {}",
                            options.max_num_batched_tokens, 1 << 20));
  if (options.max_lora_rank < 0 || options.max_lora_rank > kMaxLoraRank)
    return fail(ErrorCode::invalid_argument, fmt::format("max_lora_rank is {}; it must be 0 to {}",
                                                         options.max_lora_rank, kMaxLoraRank));
  return {};
}

Result<void> check_windows(const ModelConfig& config) {
  const auto layers = static_cast<size_t>(config.num_layers);
  const bool valid = std::ranges::all_of(config.windows, [](int window) { return window >= 0; });
  if (config.windows.empty() || (config.windows.size() == layers && valid)) return {};
  return fail(ErrorCode::invalid_argument,
              fmt::format("{} attention windows for {} layers; there must be one of 0 or more for "
                          "each, or none",
                          config.windows.size(), layers));
}

// Adapters know their inputs in the order of the model.
Result<void> check_orders(const ModelWeights& weights) {
  for (const LayerWeights& w : weights.layers)
    for (const Linear* linear : {&w.q, &w.k, &w.v, &w.o, &w.gate, &w.up, &w.down})
      if (!linear->order.empty())
        return fail(ErrorCode::unsupported,
                    "LoRA adapters are not supported on weights in act-order (desc_act of GPTQ)");
  return {};
}

void add_cost(StepCost& cost, const kernels::PanelMatrix& w) {
  cost.bytes += w.panels() * static_cast<int64_t>(w.panel_bytes);
  cost.macs += w.rows * w.cols;
}

// What one token causes: of the experts' weights it needs those of the few that it uses.
void add_expert_cost(StepCost& cost, const ExpertWeights& w, const ExpertConfig& experts) {
  if (experts.count == 0) return;
  StepCost all;
  for (const Linear* linear : {&w.gate, &w.up, &w.down}) add_cost(all, linear->weight.view());
  cost.bytes += all.bytes / experts.count * experts.used;
  cost.macs += all.macs / experts.count * experts.used;
}

bool all_single_tokens(const ForwardBatch& batch) {
  return batch.sequences.size() == batch.tokens.size();
}

bool any_adapter(const ForwardBatch& batch) {
  return std::ranges::any_of(batch.sequences,
                             [](const BatchSequence& s) { return s.adapter != nullptr; });
}

}  // namespace

Result<std::unique_ptr<Transformer>> Transformer::create(ModelConfig config, ModelWeights weights,
                                                         const kernels::Ops& ops, ThreadPool& pool,
                                                         const TransformerOptions& options) {
  OCTAVO_CHECK_OK(check_options(options));
  OCTAVO_CHECK_OK(check_windows(config));
  const KvLayout layout{.num_layers = config.num_kv_layers(),
                        .num_kv_heads = config.num_kv_heads,
                        .head_dim = config.head_dim,
                        .block_size = options.block_size,
                        .type = options.kv_cache_dtype};
  OCTAVO_TRY(KvStorage kv, KvStorage::allocate(layout, options.num_blocks));
  std::unique_ptr<Transformer> model(
      new Transformer(std::move(config), std::move(weights), ops, pool, options, std::move(kv)));
  OCTAVO_CHECK_OK(model->allocate(options));
  return model;
}

Result<void> Transformer::allocate(const TransformerOptions& options) {
  if (options.max_lora_rank > 0) OCTAVO_CHECK_OK(check_orders(weights_));
  const ModelConfig& c = config_;
  limits_ = {.vocab_size = c.vocab_size,
             .logits_stride = logits_stride(c.vocab_size),
             .context_length = c.context_length,
             .max_num_batched_tokens = options.max_num_batched_tokens,
             .max_logits_rows = max_logits_rows(c.vocab_size, options.max_num_batched_tokens),
             .num_blocks = options.num_blocks,
             .block_size = options.block_size,
             .max_lora_rank = options.max_lora_rank,
             .hidden_size = c.hidden_size,
             .num_layers = c.architecture->encoder ? 0 : c.num_layers,
             .is_encoder = c.architecture->encoder};
  const int positions = options.max_model_len > 0 ? options.max_model_len : c.context_length;
  ropes_.emplace_back(c.rope, positions);
  if (c.local_rope) ropes_.emplace_back(*c.local_rope, positions);
  head_rows_.reserve(static_cast<size_t>(options.max_num_batched_tokens));
  for (const LayerWeights& w : weights_.layers) {
    for (const Linear* linear : {&w.q, &w.k, &w.v, &w.o, &w.gate, &w.up, &w.down})
      add_cost(layers_cost_, linear->weight.view());
    add_expert_cost(layers_cost_, w.experts, c.experts);
  }
  OCTAVO_TRY(buffers_, StepBuffers::allocate(buffer_shape(c, options.max_num_batched_tokens,
                                                          pool_.size(), options.max_lora_rank)));
  OCTAVO_TRY(inputs_, StepInputs::create(c, options.block_size, options.max_num_batched_tokens,
                                         pool_.size(), options.shared_prefix_attention));
  return {};
}

StepRun Transformer::prepare_run() {
  return {.config = config_,
          .weights = weights_,
          .ops = ops_,
          .rounds = rounds_,
          .ropes = ropes_,
          .buffers = buffers_,
          .inputs = inputs_,
          .kv = kv_,
          .profile = profile_};
}

StepCost Transformer::cost_of(const ForwardBatch& batch, const StepProgram& program) const {
  int64_t context = 0;
  for (const BatchSequence& s : batch.sequences) context += s.first_position + s.num_tokens;
  const KvLayout& kv = kv_.layout();
  const auto kv_bytes =
      static_cast<int64_t>(kv.bytes_per_layer_block()) * kv.num_layers * context / kv.block_size;
  const int64_t layers = config_.num_layers;
  const int64_t computed = layers - std::ssize(batch.skipped_layers);
  return {.bytes = (layers_cost_.bytes + kv_bytes) * computed / layers,
          .macs = layers_cost_.macs * computed / layers * std::ssize(batch.tokens),
          .barriers = program.barriers};
}

bool Transformer::rounds_activations(const kernels::PanelMatrix& w) const {
  return rounds_ && info(w.type).quantized;
}

// Few sets are used, again and again: a program is found by a number.
int Transformer::number_of(std::span<const int> skipped_layers) {
  if (skipped_layers.empty()) return 0;
  const auto found = std::ranges::find_if(layer_sets_, [&](const std::vector<int>& set) {
    return std::ranges::equal(set, skipped_layers);
  });
  const auto index = static_cast<int>(found - layer_sets_.begin());
  if (found == layer_sets_.end())
    layer_sets_.emplace_back(skipped_layers.begin(), skipped_layers.end());
  return index + 1;
}

bool Transformer::forward(const ForwardBatch& batch) {
  if (batch.cancel.stop_requested()) return false;
  if (profile_) profile_->start();
  const StepProgram& program = programs_.of({.config = config_,
                                             .weights = weights_,
                                             .buffers = buffers_,
                                             .rounds = rounds_,
                                             .skipped_layers = batch.skipped_layers},
                                            {.tokens = static_cast<int>(batch.tokens.size()),
                                             .kept = batch.num_logits_rows(),
                                             .single_tokens = all_single_tokens(batch),
                                             .adapted = any_adapter(batch),
                                             .skips = number_of(batch.skipped_layers)});
  const int threads = threads_of(cost_of(batch, program));
  inputs_.set(batch, buffers_, threads);
  StepRun run = prepare_run();
  run.cancel = batch.cancel;
  if (profile_) profile_->lap(StepPart::plan);
  pool_.run(threads, [&](Team& team) { StepRunner(run, team).step(program); });
  if (profile_) profile_->lap(StepPart::wait);
  return !run.cancelled;
}

// The step left the rows it kept at the front, in their order.
void Transformer::find_kept(std::span<const int> rows) {
  const std::span<const int> kept = inputs_.kept_rows();
  head_rows_.clear();
  for (const int row : rows)
    head_rows_.push_back(
        static_cast<int>(std::lower_bound(kept.begin(), kept.end(), row) - kept.begin()));
}

void Transformer::hidden(std::span<const int> rows, float* out) {
  find_kept(rows);
  const int64_t size = config_.hidden_size;
  for (const int row : head_rows_) {
    const float* x = buffers_.residual + row * size;
    if (config_.architecture->encoder)
      std::copy_n(x, size, out);
    else
      ops_.rms_norm(x, weights_.final_norm.data(), config_.norm_eps, size, out);
    out += size;
  }
}

void Transformer::logits(std::span<const int> rows, float* out) {
  if (profile_) profile_->start();
  find_kept(rows);
  StepCost cost;
  add_cost(cost, weights_.output_head().view());
  cost.macs *= std::ssize(rows);
  cost.barriers = 1;
  StepRun run = prepare_run();
  pool_.run(threads_of(cost), [&](Team& team) { StepRunner(run, team).head(head_rows_, out); });
  if (profile_) profile_->lap(StepPart::wait);
}

}  // namespace octavo
