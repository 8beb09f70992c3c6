#include "model/transformer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace octavo {
namespace {

Result<void> check_options(const TransformerOptions& options) {
  if (options.max_num_batched_tokens < 1 || options.max_num_batched_tokens > (1 << 20))
    return fail(ErrorCode::invalid_argument,
                fmt::format("max_num_batched_tokens is {}; it must be 1 to {}",
                            options.max_num_batched_tokens, 1 << 20));
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

// Work grows with position, and the pool gives each thread one contiguous range: dealing the items
// out in turns makes the ranges equal.
template <class T>
void deal_out(std::vector<T>& items, int hands) {
  std::vector<T> dealt;
  dealt.reserve(items.size());
  for (size_t hand = 0; hand < static_cast<size_t>(hands); ++hand)
    for (size_t i = hand; i < items.size(); i += static_cast<size_t>(hands))
      dealt.push_back(items[i]);
  items = std::move(dealt);
}

}  // namespace

Result<std::unique_ptr<Transformer>> Transformer::create(ModelConfig config, ModelWeights weights,
                                                         const kernels::Ops& ops, ThreadPool& pool,
                                                         const TransformerOptions& options) {
  OCTAVO_CHECK_OK(check_options(options));
  OCTAVO_CHECK_OK(check_windows(config));
  const KvLayout layout{.num_layers = config.num_layers,
                        .num_kv_heads = config.num_kv_heads,
                        .head_dim = config.head_dim,
                        .block_size = options.block_size,
                        .type = options.kv_cache_dtype};
  OCTAVO_TRY(KvStorage kv, KvStorage::allocate(layout, options.num_blocks));
  std::unique_ptr<Transformer> model(new Transformer(std::move(config), std::move(weights), ops,
                                                     pool, options.dtype, std::move(kv)));
  const ModelConfig& c = model->config_;
  model->limits_ = {.vocab_size = c.vocab_size,
                    .logits_stride = logits_stride(c.vocab_size),
                    .context_length = c.context_length,
                    .max_num_batched_tokens = options.max_num_batched_tokens,
                    .max_logits_rows = max_logits_rows(options.max_num_batched_tokens),
                    .num_blocks = options.num_blocks,
                    .block_size = options.block_size};
  model->frequencies_ = rope_frequencies(c.rope);
  OCTAVO_TRY(model->buffers_, StepBuffers::allocate(step_shape(c, options.max_num_batched_tokens)));
  return model;
}

bool Transformer::forward(const ForwardBatch& batch) {
  const auto tokens = static_cast<int64_t>(batch.tokens.size());
  if (profile_) profile_->start();
  embed(batch);
  plan_positions(batch);
  plan_attention(batch);
  lap(StepPart::plan);
  for (int i = 0; i < config_.num_layers; ++i) {
    if (batch.cancel.stop_requested()) return false;
    const LayerWeights& layer = weights_.layers[static_cast<size_t>(i)];
    attention_block(layer, kv_.layer(i), window_of(i), tokens);
    ffn_block(layer, tokens);
  }
  return true;
}

void Transformer::embed(const ForwardBatch& batch) {
  const auto tokens = static_cast<int64_t>(batch.tokens.size());
  pool_.parallel_for(tokens, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t)
      kernels::unpack_row(weights_.embedding.view(), raw(batch.tokens[static_cast<size_t>(t)]),
                          buffers_.residual + t * config_.hidden_size);
  });
}

// Where each row's K and V go, and the angles of its position.
void Transformer::plan_positions(const ForwardBatch& batch) {
  position_.clear();
  block_.clear();
  for (const BatchSequence& s : batch.sequences)
    for (int p = s.first_position; p < s.first_position + s.num_tokens; ++p) {
      position_.push_back(p);
      block_.push_back(raw(s.block_table[static_cast<size_t>(p / limits_.block_size)]));
    }
  const auto pairs = static_cast<int64_t>(frequencies_.size());
  pool_.parallel_for(static_cast<int64_t>(position_.size()), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t)
      for (int64_t i = 0; i < pairs; ++i) {
        const float angle = static_cast<float>(position_[static_cast<size_t>(t)]) *
                            frequencies_[static_cast<size_t>(i)];
        buffers_.cosines[t * pairs + i] = static_cast<float>(std::cos(double{angle}));
        buffers_.sines[t * pairs + i] = static_cast<float>(std::sin(double{angle}));
      }
  });
}

// One item per KV head and few tokens of a sequence. The layer's cache is filled in layer by layer.
void Transformer::plan_attention(const ForwardBatch& batch) {
  tables_.clear();
  items_.clear();
  size_t blocks = 0;
  for (const BatchSequence& s : batch.sequences) blocks += s.block_table.size();
  tables_.reserve(blocks);  // items point into it
  const int group = config_.num_heads / config_.num_kv_heads;
  const int heads_per_item = std::min(group, kernels::kMaxAttentionRows);
  const int tile = kernels::kMaxAttentionRows / heads_per_item;
  const int64_t q_dim = int64_t{config_.num_heads} * config_.head_dim;
  const float scale = 1.0f / std::sqrt(static_cast<float>(config_.head_dim));
  for (const BatchSequence& s : batch.sequences) {
    const int32_t* table = tables_.data() + tables_.size();
    for (BlockId block : s.block_table) tables_.push_back(raw(block));
    for (int first = 0; first < s.num_tokens; first += tile)
      for (int head = 0; head < config_.num_heads;) {
        const int in_group = std::min(heads_per_item, group - head % group);
        const int64_t offset = (s.first_row + first) * q_dim + int64_t{head} * config_.head_dim;
        items_.push_back({.kv = nullptr,
                          .block_table = table,
                          .kv_head = head / group,
                          .group = in_group,
                          .tokens = std::min(tile, s.num_tokens - first),
                          .first_position = s.first_position + first,
                          .window = 0,
                          .scale = scale,
                          .q = buffers_.q + offset,
                          .q_stride = q_dim,
                          .out = buffers_.attended + offset,
                          .out_stride = q_dim,
                          .part = kernels::kAllParts,
                          .partial = nullptr});
        head += in_group;
      }
  }
  split_attention();
  deal_out(items_, pool_.size());
}

// A few single tokens over long contexts do not give every thread its share: then each part of the
// context becomes an item of its own. The result is the same to the bit.
void Transformer::split_attention() {
  part_items_.clear();
  const auto enough = static_cast<size_t>(4 * pool_.size());
  if (pool_.size() == 1 || items_.size() >= enough) return;
  const auto parts_of = [](const kernels::AttentionItem& item) {
    return (item.first_position + item.tokens + kernels::kSplit - 1) / kernels::kSplit;
  };
  const auto floats_of = [&](const kernels::AttentionItem& item) {
    return static_cast<size_t>(parts_of(item) * item.tokens * item.group * (config_.head_dim + 2));
  };
  size_t floats = 0;
  int most_parts = 0;
  for (const kernels::AttentionItem& item : items_) {
    floats += floats_of(item);
    most_parts = std::max(most_parts, parts_of(item));
  }
  if (most_parts == 1) return;
  partials_.resize(std::max(partials_.size(), floats));
  float* partial = partials_.data();
  for (kernels::AttentionItem& item : items_) {
    item.partial = partial;
    partial += floats_of(item);
    for (int part = 0; part < parts_of(item); ++part) {
      part_items_.push_back(item);
      part_items_.back().part = part;
    }
  }
}

void Transformer::attention_block(const LayerWeights& layer, const kernels::KvLayer& kv, int window,
                                  int64_t tokens) {
  const int64_t hidden = config_.hidden_size;
  const int64_t q_dim = int64_t{config_.num_heads} * config_.head_dim;
  pool_.parallel_for(tokens, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      float* normed = buffers_.normed + t * hidden;
      ops_.rms_norm(buffers_.residual + t * hidden, layer.attention_norm.data(), config_.rms_eps,
                    hidden, normed);
      quantize_row(normed, hidden, t);
    }
  });
  lap(StepPart::norm);
  multiply({{&layer.q, buffers_.q}, {&layer.k, buffers_.k}, {&layer.v, buffers_.v}},
           buffers_.normed, hidden, tokens);
  lap(StepPart::qkv);
  pool_.parallel_for(tokens, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) write_kv(kv, t);
  });
  lap(StepPart::rope_kv);
  attend(kv, window);
  lap(StepPart::attention);
  pool_.parallel_for(tokens, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) quantize_row(buffers_.attended + t * q_dim, q_dim, t);
  });
  lap(StepPart::norm);
  multiply({{&layer.o, buffers_.projected}}, buffers_.attended, q_dim, tokens);
  lap(StepPart::o);
}

void Transformer::attend(const kernels::KvLayer& kv, int window) {
  const auto run = [&](std::span<const kernels::AttentionItem> items,
                       void (*op)(const kernels::AttentionItem&)) {
    pool_.parallel_for(static_cast<int64_t>(items.size()), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        kernels::AttentionItem item = items[static_cast<size_t>(i)];
        item.kv = &kv;
        item.window = window;
        op(item);
      }
    });
  };
  if (part_items_.empty()) return run(items_, ops_.attention);
  run(part_items_, ops_.attention);
  run(items_, ops_.merge_attention);
}

// Rotates a row's q and k to its position and stores k and v.
void Transformer::write_kv(const kernels::KvLayer& kv, int64_t row) {
  const RopeConfig& rope = config_.rope;
  const int pairs = rope.dims / 2;
  const float* cosines = buffers_.cosines + row * pairs;
  const float* sines = buffers_.sines + row * pairs;
  const int64_t q_dim = int64_t{config_.num_heads} * config_.head_dim;
  const int64_t kv_dim = int64_t{config_.num_kv_heads} * config_.head_dim;
  const bool interleaved = config_.architecture->rope_interleaved;
  float* k = buffers_.k + row * kv_dim;
  ops_.rope(buffers_.q + row * q_dim, config_.num_heads, config_.head_dim, pairs, interleaved,
            cosines, sines);
  ops_.rope(k, config_.num_kv_heads, config_.head_dim, pairs, interleaved, cosines, sines);
  const int in_block = position_[static_cast<size_t>(row)] % limits_.block_size;
  for (int head = 0; head < config_.num_kv_heads; ++head)
    ops_.store_kv(kv, block_[static_cast<size_t>(row)], head, in_block, k + head * config_.head_dim,
                  buffers_.v + row * kv_dim + head * config_.head_dim);
}

void Transformer::ffn_block(const LayerWeights& layer, int64_t tokens) {
  const int64_t hidden = config_.hidden_size;
  const int64_t inner = config_.intermediate_size;
  pool_.parallel_for(tokens, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      float* normed = buffers_.normed + t * hidden;
      ops_.add(buffers_.residual + t * hidden, buffers_.projected + t * hidden, hidden);
      ops_.rms_norm(buffers_.residual + t * hidden, layer.ffn_norm.data(), config_.rms_eps, hidden,
                    normed);
      quantize_row(normed, hidden, t);
    }
  });
  lap(StepPart::norm);
  multiply({{&layer.gate, buffers_.gate}, {&layer.up, buffers_.up}}, buffers_.normed, hidden,
           tokens);
  lap(StepPart::gate_up);
  pool_.parallel_for(tokens, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      float* gate = buffers_.gate + t * inner;
      ops_.silu_mul(gate, buffers_.up + t * inner, inner, gate);
      quantize_row(gate, inner, t);
    }
  });
  lap(StepPart::activation);
  multiply({{&layer.down, buffers_.projected}}, buffers_.gate, inner, tokens);
  lap(StepPart::down);
  pool_.parallel_for(tokens, [&](int64_t begin, int64_t end) {
    ops_.add(buffers_.residual + begin * hidden, buffers_.projected + begin * hidden,
             (end - begin) * hidden);
  });
  lap(StepPart::norm);
}

void Transformer::logits(std::span<const int> rows, float* out) {
  if (profile_) profile_->start();
  const int64_t hidden = config_.hidden_size;
  for (size_t i = 0; i < rows.size(); ++i) {
    float* normed = buffers_.normed + static_cast<int64_t>(i) * hidden;
    ops_.rms_norm(buffers_.residual + rows[i] * hidden, weights_.final_norm.data(), config_.rms_eps,
                  hidden, normed);
    quantize_row(normed, hidden, static_cast<int64_t>(i));
  }
  const kernels::PanelMatrix head = weights_.output_head().view();
  pool_.parallel_for(head.panels(), [&](int64_t begin, int64_t end) {
    multiply_panels(head, begin, end, buffers_.normed, hidden, static_cast<int64_t>(rows.size()),
                    out);
  });
  lap(StepPart::head);
}

bool Transformer::rounds_activations(const kernels::PanelMatrix& w) const {
  return dtype_ == ComputeType::automatic && info(w.type).quantized;
}

// The rounded form of a row that is about to be multiplied. Models without quantised weights never
// read it.
void Transformer::quantize_row(const float* x, int64_t cols, int64_t row) {
  if (dtype_ == ComputeType::automatic && cols % kernels::kBlock == 0)
    ops_.quantize_a8(x, a8(cols), row);
}

kernels::A8 Transformer::a8(int64_t cols) const {
  kernels::A8 rounded = buffers_.rounded;
  rounded.cols = cols;
  return rounded;
}

// The panels of all products are one range, so that one parallel region covers q, k and v, or gate
// and up.
void Transformer::multiply(std::initializer_list<Product> products, const float* x, int64_t cols,
                           int64_t tokens) {
  int64_t total = 0;
  for (const Product& p : products) total += p.linear->weight.view().panels();
  pool_.parallel_for(total, [&](int64_t begin, int64_t end) {
    int64_t first = 0;
    for (const Product& p : products) {
      const kernels::PanelMatrix w = p.linear->weight.view();
      const int64_t from = std::max(begin - first, int64_t{0}),
                    to = std::min(end - first, w.panels());
      if (from < to) {
        multiply_panels(w, from, to, x, cols, tokens, p.y);
        if (!p.linear->bias.empty())
          for (int64_t t = 0; t < tokens; ++t)
            ops_.add(p.y + t * w.panels() * kernels::kPanelRows + from * kernels::kPanelRows,
                     p.linear->bias.data() + from * kernels::kPanelRows,
                     (to - from) * kernels::kPanelRows);
      }
      first += w.panels();
    }
  });
}

void Transformer::multiply_panels(const kernels::PanelMatrix& w, int64_t begin, int64_t end,
                                  const float* x, int64_t cols, int64_t tokens, float* y) {
  const int64_t stride = w.panels() * kernels::kPanelRows;
  if (rounds_activations(w))
    ops_.matmul_a8(w, begin, end, a8(cols), tokens, y, stride);
  else
    ops_.matmul_f32(w, begin, end, x, cols, tokens, y, stride);
}

}  // namespace octavo
