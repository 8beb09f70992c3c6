// LoRA adapters made by seed for a folder of safetensors, in both forms that are read, and the
// model with the adapter merged into its weights.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "formats/hf_families.h"
#include "formats/hf_row_order.h"
#include "formats/safetensors.h"
#include "support/gguf_writer.h"
#include "support/paths.h"
#include "support/safetensors_writer.h"
#include "tensor/dequant.h"
#include "tensor/quantize.h"

namespace octavo::testing {

struct LoraChoice {
  unsigned seed = 1;
  int rank = 4;
  DType type = DType::f32;  // of A and B: f32, f16 or bf16
  double alpha = 8;
  float size = 0.05f;     // of the random numbers
  std::string only = {};  // modules whose names hold it; empty: all
  bool use_rslora = false;
};

class MadeLora {
 public:
  MadeLora(const std::string& model, const LoraChoice& choice) : model_(model), choice_(choice) {
    auto file = SafetensorsFile::open(model + "/model.safetensors");
    EXPECT_TRUE(file) << (file ? "" : file.error().message);
    std::mt19937 random(choice.seed);
    std::uniform_real_distribution<float> number(-choice.size, choice.size);
    for (const TensorView& tensor : file->tensors()) {
      Weight& w = weights_[tensor.name];
      w.shape = {tensor.rows(), tensor.cols()};
      w.rank = tensor.rank;
      w.values.resize(static_cast<size_t>(tensor.rows() * tensor.cols()));
      dequantize_row(tensor.type, tensor.data.data(), w.values.data(), std::ssize(w.values));
    }
    for (auto& [name, w] : weights_) {
      if (!is_changed(name)) continue;
      w.a.resize(static_cast<size_t>(choice.rank * w.shape.cols));
      w.b.resize(static_cast<size_t>(w.shape.rows * choice.rank));
      for (auto* matrix : {&w.a, &w.b})
        for (float& x : *matrix) {
          const float drawn = number(random);
          std::byte stored[4];
          quantize_row(choice.type, &drawn, stored, 1);
          dequantize_row(choice.type, stored, &x, 1);
        }
    }
  }

  double scale() const {
    return choice_.alpha / (choice_.use_rslora ? std::sqrt(choice_.rank) : choice_.rank);
  }

  nlohmann::json config() const {
    return {{"peft_type", "LORA"},
            {"r", choice_.rank},
            {"lora_alpha", choice_.alpha},
            {"use_rslora", choice_.use_rslora},
            {"bias", "none"},
            {"fan_in_fan_out", false},
            {"init_lora_weights", true},
            {"modules_to_save", nullptr},
            {"target_modules", {"q_proj", "v_proj"}},
            {"lora_dropout", 0.05},
            {"rank_pattern", nlohmann::json::object()},
            {"alpha_pattern", nlohmann::json::object()},
            {"task_type", "CAUSAL_LM"}};
  }

  // A folder as PEFT saves it; returns it.
  std::string write_peft(const std::string& folder) const {
    std::filesystem::create_directories(folder);
    write(folder + "/adapter_config.json", config().dump());
    write(folder + "/adapter_model.safetensors", peft_tensors());
    return folder;
  }
  std::string peft_tensors() const {
    Table table;
    for (const auto& [name, w] : weights_) {
      if (w.a.empty()) continue;
      const std::string module = "base_model.model." + name.substr(0, name.size() - 7);
      table.add(module + ".lora_A.weight", {choice_.rank, w.shape.cols}, w.a, choice_.type);
      table.add(module + ".lora_B.weight", {w.shape.rows, choice_.rank}, w.b, choice_.type);
    }
    return table.bytes();
  }

  std::string write_gguf(const std::string& path) const {
    write(path, gguf());
    return path;
  }
  std::string gguf() const {
    const auto model = nlohmann::json::parse(read_file(model_ + "/config.json"));
    const HfFamily& family = *find_hf_family(std::string(model["model_type"]));
    const int64_t hidden = model["hidden_size"], heads = model["num_attention_heads"];
    const int64_t head_dim = model.contains("head_dim") && !model["head_dim"].is_null()
                                 ? int64_t{model["head_dim"]}
                                 : hidden / heads;
    GgufWriter out;
    out.string("general.type", "adapter")
        .string("general.architecture", family.architecture)
        .string("adapter.type", "lora")
        .f32("adapter.lora.alpha", static_cast<float>(choice_.alpha));
    for (const auto& [name, w] : weights_) {
      if (w.a.empty()) continue;
      const std::string target = gguf_name_of(family, name)->name;
      const bool permuted = family.permuted_qk && (target.find("attn_q.") != target.npos ||
                                                   target.find("attn_k.") != target.npos);
      std::vector<float> b;
      for (int64_t row = 0; row < w.shape.rows; ++row) {
        const int64_t from = permuted ? hf_row_of(row, head_dim) : row;
        b.insert(b.end(), w.b.begin() + from * choice_.rank,
                 w.b.begin() + (from + 1) * choice_.rank);
      }
      const auto rank = static_cast<uint64_t>(choice_.rank);
      out.tensor(target + ".lora_a", {static_cast<uint64_t>(w.shape.cols), rank}, 0, bytes_of(w.a));
      out.tensor(target + ".lora_b", {rank, static_cast<uint64_t>(w.shape.rows)}, 0, bytes_of(b));
    }
    return out.build();
  }

  // The whole model with W + scale * B A in float32; returns its folder.
  std::string write_merged(const std::string& folder) const {
    std::filesystem::create_directories(folder);
    for (const char* name : {"config.json", "tokenizer.json", "tokenizer_config.json"})
      if (std::filesystem::exists(model_ + "/" + name))
        write(folder + "/" + name, read_file(model_ + "/" + name));
    Table table;
    for (const auto& [name, w] : weights_) table.add(name, dims(w), merged(w));
    write(folder + "/model.safetensors", table.bytes());
    return folder;
  }

 private:
  struct Shape {
    int64_t rows = 0, cols = 0;
  };
  struct Weight {
    Shape shape;
    int rank = 0;
    std::vector<float> values, a, b;
  };
  class Table {
   public:
    void add(const std::string& name, const std::vector<int64_t>& shape,
             const std::vector<float>& values, DType type = DType::f32) {
      const size_t begin = data_.size();
      data_.resize(begin + row_bytes(type, values.size()));
      quantize_row(type, values.data(), reinterpret_cast<std::byte*>(data_.data() + begin),
                   std::ssize(values));
      const char* dtype = type == DType::f32 ? "F32" : type == DType::f16 ? "F16" : "BF16";
      header_[name] = {{"dtype", dtype}, {"shape", shape}, {"data_offsets", {begin, data_.size()}}};
    }
    std::string bytes() const { return safetensors(header_.dump(), data_); }

   private:
    nlohmann::ordered_json header_;
    std::string data_;
  };

  static std::string bytes_of(const std::vector<float>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
  }
  static void write(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }
  static std::vector<int64_t> dims(const Weight& w) {
    if (w.rank == 1) return {w.shape.cols};
    return {w.shape.rows, w.shape.cols};
  }
  bool is_changed(const std::string& name) const {
    return name.find("_proj.weight") != name.npos && name.find("experts") == name.npos &&
           name.find(choice_.only) != name.npos;
  }
  std::vector<float> merged(const Weight& w) const {
    if (w.a.empty()) return w.values;
    std::vector<float> out = w.values;
    const auto rank = static_cast<size_t>(choice_.rank), cols = static_cast<size_t>(w.shape.cols);
    for (size_t row = 0; row < static_cast<size_t>(w.shape.rows); ++row)
      for (size_t col = 0; col < cols; ++col) {
        double sum = 0;
        for (size_t i = 0; i < rank; ++i)
          sum += double{w.b[row * rank + i]} * double{w.a[i * cols + col]};
        out[row * cols + col] = static_cast<float>(double{out[row * cols + col]} + scale() * sum);
      }
    return out;
  }

  std::string model_;
  LoraChoice choice_;
  std::map<std::string, Weight> weights_;
};

}  // namespace octavo::testing
