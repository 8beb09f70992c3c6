// A model on disk, whatever its format: metadata by GGUF's keys and tensors by GGUF's names and
// layouts, which is what the rest of the program asks for. A GGUF file gives them as they are; a
// Hugging Face folder is translated while it is read (formats/hf_model.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file_map.h"
#include "base/result.h"
#include "core/tokenizer_spec.h"
#include "formats/gguf_metadata.h"
#include "tensor/tensor_view.h"

namespace octavo {

// One file of a model.
struct ModelFilePart {
  FileIdentity identity;
  std::span<const std::byte> bytes;
  uint64_t tables = 0;  // bytes before the first tensor
  std::string path = {};
};

class ModelSource : public GgufMetadata {
 public:
  virtual ~ModelSource() = default;
  ModelSource(const ModelSource&) = delete;
  ModelSource& operator=(const ModelSource&) = delete;

  virtual std::string format() const = 0;                   // "GGUF version 3"
  virtual uint64_t size() const = 0;                        // of all files, bytes
  virtual std::span<const TensorView> tensors() const = 0;  // shapes and types are checked
  virtual const TensorView* find_tensor(std::string_view name) const = 0;  // nullptr if absent

  // The tensor with its bytes: where they lie in the file or, if they must be made first, in
  // `room`. REQUIRES: one of tensors(). Any number of threads, each with its own room. Errors:
  // numeric_error (values that cannot be, or cannot be stored so; names the tensor).
  virtual Result<TensorView> read(const TensorView& tensor, std::vector<std::byte>& room) const = 0;

  // Not empty: column i of the matrix, as read() gives it, belongs to input input_order()[i] (the
  // act-order of packed weights).
  virtual std::span<const int32_t> input_order(const TensorView&) const { return {}; }

  // Gives the memory of a tensor's mapped pages back, once it has been copied elsewhere. It can
  // still be read.
  virtual void drop(const TensorView& tensor) const = 0;

  // How the files spell the name of a tensor: for messages.
  virtual std::string spelling(std::string_view name) const { return std::string(name); }

  virtual Result<TokenizerSpec> tokenizer() const = 0;

  // The files it is read from; empty: it is in memory only.
  virtual std::vector<ModelFilePart> parts() const = 0;
  // What is done to the tensors beside reading them; two sources that differ in it have other
  // weights.
  virtual std::string conversion() const { return {}; }

  // What the user should know about what was left out, or passed over.
  virtual std::vector<std::string> notes() const { return {}; }

 protected:
  explicit ModelSource(GgufMetadata metadata) : GgufMetadata(std::move(metadata)) {}
  ModelSource(ModelSource&&) = default;
  ModelSource& operator=(ModelSource&&) = default;
};

}  // namespace octavo
