// A model file loaded with given settings, and logits out of it, for tests that look below the
// engine.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/open_model.h"
#include "kernels/isa.h"
#include "kv/block_size.h"
#include "model/lora.h"
#include "model/transformer.h"

namespace octavo::testing {

struct TestModelOptions {
  ComputeType dtype = ComputeType::automatic;
  std::optional<DType> matrices = {};  // what a folder's become; nothing: as stored
  KvType kv_cache_dtype = KvType::f16;
  int threads = 2;
  int block_size = 32;
  int chunk = 512;             // tokens per forward
  int contexts = 1;            // blocks for so many sequences
  int context_length = 0;      // 0: the model's own
  int max_model_len = 0;       // 0: the same
  std::vector<int> windows{};  // put on the layers in place of the model's own
  bool reuse_steps = true;
  bool shared_prefix_attention = true;
  int max_lora_rank = 0;
  bool kv_cache = true;  // false: every chunk is computed together with everything before it
  const kernels::Ops* ops = nullptr;  // nullptr: what the environment selects
};

class TestModel {
 public:
  TestModel(const std::string& path, TestModelOptions options)
      : options_(options), pool_(*ThreadPool::create(options.threads)) {
    auto file = open_model(path, {options.matrices});
    EXPECT_TRUE(file) << (file ? "" : file.error().message);
    auto config = read_model_config(**file);
    EXPECT_TRUE(config) << (config ? "" : config.error().message);
    if (!options.windows.empty()) config->windows = options.windows;
    if (options.context_length > 0) config->context_length = options.context_length;
    auto weights = load_weights(**file, *config, *pool_, {});
    EXPECT_TRUE(weights) << (weights ? "" : weights.error().message);
    const int context = config->context_length;
    const int largest = options.kv_cache ? options.chunk : context;
    auto model = Transformer::create(
        std::move(*config), std::move(*weights),
        options.ops ? *options.ops : **kernels::select_isa_from_environment(), *pool_,
        {.dtype = options.dtype,
         .kv_cache_dtype = options.kv_cache_dtype,
         .block_size = options.block_size,
         .num_blocks = options.contexts * static_cast<int>(blocks_for(context, options.block_size)),
         .max_model_len = options.max_model_len,
         .max_num_batched_tokens = largest,
         .max_lora_rank = options.max_lora_rank,
         .shared_prefix_attention = options.shared_prefix_attention,
         .reuse_steps = options.reuse_steps,
         .all_threads = true});
    EXPECT_TRUE(model) << (model ? "" : model.error().message);
    model_ = std::move(*model);
    config_ = *read_model_config(**file);
    // Out of order, so that a position is never by accident where its table says.
    for (int i = model_->limits().num_blocks - 1; i >= 0; --i) table_.push_back(BlockId{i});
  }

  // Logits after each of the given positions (ascending) of the sequence.
  std::vector<std::vector<float>> logits(std::span<const TokenId> tokens,
                                         const std::vector<int>& positions) {
    std::vector<std::vector<float>> out;
    each_logits(tokens, positions,
                [&](int, std::span<const float> row) { out.emplace_back(row.begin(), row.end()); });
    return out;
  }

  // The same, one after the other: body(position, row).
  template <class Body>
  void each_logits(std::span<const TokenId> tokens, const std::vector<int>& positions,
                   const Body& body) {
    const auto total = static_cast<int>(tokens.size());
    for (int first = 0; first < total; first += options_.chunk) {
      const int end = std::min(first + options_.chunk, total);
      const int begin = options_.kv_cache ? first : 0;
      const BatchSequence sequence{0, end - begin, begin, table_, adapter_.get()};
      std::vector<int> rows;
      for (int position : positions)
        if (position >= first && position < end) rows.push_back(position - begin);
      model_->forward(
          {.tokens = tokens.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)),
           .sequences = {&sequence, 1},
           .logits_rows = rows});
      each_row(rows, [&](int row, std::span<const float> logits) { body(begin + row, logits); });
    }
  }

  Transformer& transformer() { return *model_; }

  using Adapter = std::shared_ptr<const LoraAdapter>;
  Adapter load_adapter(const std::string& path) const {
    const auto file = LoraFile::open(path, config_.architecture->name);
    EXPECT_TRUE(file) << (file ? "" : file.error().message);
    auto adapter = LoraAdapter::load(*file, config_, options_.max_lora_rank);
    EXPECT_TRUE(adapter) << (adapter ? "" : adapter.error().message);
    return *adapter;
  }
  // Of what logits() computes from now on; nullptr: none.
  void use_adapter(Adapter adapter) { adapter_ = std::move(adapter); }

 private:
  template <class Body>
  void each_row(const std::vector<int>& rows, const Body& body) {
    const ModelLimits& limits = model_->limits();
    const auto stride = static_cast<size_t>(limits.logits_stride);
    std::vector<float> buffer(stride * static_cast<size_t>(limits.max_logits_rows));
    for (size_t i = 0; i < rows.size(); i += static_cast<size_t>(limits.max_logits_rows)) {
      const size_t count = std::min(rows.size() - i, static_cast<size_t>(limits.max_logits_rows));
      model_->logits(std::span(rows).subspan(i, count), buffer.data());
      for (size_t r = 0; r < count; ++r)
        body(rows[i + r], std::span<const float>(buffer).subspan(
                              r * stride, static_cast<size_t>(limits.vocab_size)));
    }
  }

  TestModelOptions options_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<Transformer> model_;
  std::vector<BlockId> table_;
  ModelConfig config_;
  Adapter adapter_;
};

inline std::vector<TokenId> token_ids(const std::vector<int>& ids) {
  std::vector<TokenId> out;
  for (int id : ids) out.push_back(TokenId{id});
  return out;
}

inline std::vector<int> positions_of(const std::vector<TokenId>& tokens) {
  std::vector<int> out(tokens.size());
  std::iota(out.begin(), out.end(), 0);
  return out;
}

inline int argmax_index(std::span<const float> row) {
  return static_cast<int>(std::max_element(row.begin(), row.end()) - row.begin());
}

}  // namespace octavo::testing
