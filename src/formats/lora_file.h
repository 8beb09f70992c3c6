// A LoRA adapter on disk: for some matrices W of a model two small ones, so that W x becomes
// W x + scale * B (A x). Two forms are read: a folder as PEFT saves it (adapter_config.json and
// adapter_model.safetensors) and a GGUF file. Everything in them is distrusted; kinds of adapters
// that compute something else are refused by name.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tensor/tensor_view.h"

namespace octavo {

// Of one matrix. The views live as long as the file.
struct LoraPair {
  std::string target;             // GGUF's name of the matrix, without ".weight": "blk.0.attn_q"
  std::string name;               // as the adapter spells it, for messages
  const TensorView* a = nullptr;  // [rank][inputs]
  const TensorView* b = nullptr;  // [outputs][rank]
  float scale = 0;
  bool hf_rows = false;  // the rows of B are in the order of a Hugging Face file: hf_row_order.h
};

class LoraFile {
 public:
  // path: a folder or a GGUF file. architecture: of the model that it is for, by GGUF's name.
  // Errors: not_found, io_error, corrupt_file, unsupported; they name file and thing.
  static Result<LoraFile> open(const std::string& path, std::string_view architecture);

  // The same on bytes in memory, which must outlive the result. `name` is for messages.
  static Result<LoraFile> parse_peft(std::string_view config, std::span<const std::byte> tensors,
                                     const std::string& name, std::string_view architecture);
  static Result<LoraFile> parse_gguf(std::span<const std::byte> bytes, const std::string& name,
                                     std::string_view architecture);

  const std::string& file() const { return name_; }
  std::span<const LoraPair> pairs() const { return pairs_; }  // by target; at least one

  class Source;  // what the views point into

 private:
  LoraFile(std::string name, std::shared_ptr<const Source> source, std::vector<LoraPair> pairs)
      : name_(std::move(name)), source_(std::move(source)), pairs_(std::move(pairs)) {}
  static Result<LoraFile> from_peft(std::string_view config, std::shared_ptr<const Source> source,
                                    const std::string& name, std::string_view architecture);
  static Result<LoraFile> from_gguf(std::shared_ptr<const Source> source, const std::string& name,
                                    std::string_view architecture);

  std::string name_;
  std::shared_ptr<const Source> source_;
  std::vector<LoraPair> pairs_;
};

}  // namespace octavo
