// A folder with a tiny BERT, whose weights follow from a formula: the same that
// tests/reference/make_bert_reference.py computes its hidden states with.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/safetensors_writer.h"
#include "support/temp_folder.h"

namespace octavo::testing {

class TinyBertWriter {
 public:
  explicit TinyBertWriter(const nlohmann::json& config) : config_(config) {}

  std::string safetensors_bytes() {
    const int hidden = config_["hidden_size"], inner = config_["intermediate_size"];
    add("embeddings.word_embeddings.weight", {config_["vocab_size"], hidden});
    add("embeddings.position_embeddings.weight", {config_["max_position_embeddings"], hidden});
    add("embeddings.token_type_embeddings.weight", {2, hidden});
    add_pair("embeddings.LayerNorm", {hidden});
    for (int layer = 0; layer < config_["num_hidden_layers"]; ++layer) {
      const std::string prefix = fmt::format("encoder.layer.{}.", layer);
      for (const char* part : {"attention.self.query", "attention.self.key", "attention.self.value",
                               "attention.output.dense"})
        add_pair(prefix + part, {hidden, hidden});
      add_pair(prefix + "attention.output.LayerNorm", {hidden});
      add_pair(prefix + "intermediate.dense", {inner, hidden});
      add_pair(prefix + "output.dense", {hidden, inner});
      add_pair(prefix + "output.LayerNorm", {hidden});
    }
    add_positions("embeddings.position_ids");
    return safetensors(header_.dump(), data_);
  }

 private:
  void add_pair(const std::string& stem, const std::vector<int>& shape) {
    add(stem + ".weight", shape);
    add(stem + ".bias", {shape[0]});
  }
  // As old checkpoints have them.
  void add_positions(const std::string& name) {
    const size_t begin = data_.size();
    const int count = config_["max_position_embeddings"];
    for (int64_t i = 0; i < count; ++i) data_.append(reinterpret_cast<const char*>(&i), sizeof(i));
    header_[name] = {
        {"dtype", "I64"}, {"shape", {1, count}}, {"data_offsets", {begin, data_.size()}}};
  }
  void add(const std::string& name, const std::vector<int>& shape) {
    int count = 1;
    for (const int size : shape) count *= size;
    const size_t begin = data_.size();
    for (int i = 0; i < count; ++i) {
      state_ = state_ * 1664525 + 1013904223;
      float value = (static_cast<float>(state_ >> 8) / (1 << 24) - 0.5f) * 0.5f;
      if (name.ends_with("LayerNorm.weight")) value += 1;
      data_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    }
    header_[name] = {{"dtype", "F32"}, {"shape", shape}, {"data_offsets", {begin, data_.size()}}};
  }

  const nlohmann::json& config_;
  nlohmann::json header_ = nlohmann::json::object();
  std::string data_;
  uint32_t state_ = 1;
};

// config.json and model.safetensors.
inline void write_tiny_bert(const TempFolder& folder, const nlohmann::json& config) {
  folder.write("config.json", config.dump());
  folder.write("model.safetensors", TinyBertWriter(config).safetensors_bytes());
}

}  // namespace octavo::testing
