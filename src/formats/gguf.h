// A GGUF model file (version 2 or 3, little-endian), mapped and checked. Owns the mapping; tensors
// are views into it. Everything in the file is distrusted: what opens without an error can be read
// without further checks. A file without tensors (a vocabulary only) opens. One part of a model in
// several files opens if that is wanted: formats/gguf_parts.h puts them together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_map.h"
#include "base/result.h"
#include "formats/model_source.h"
#include "formats/name_index.h"
#include "tensor/tensor_view.h"

namespace octavo {

// What a file says of its place in a model of several (split.no, split.count, split.tensors.count).
struct GgufSplit {
  uint32_t number = 1, count = 1;            // number: from 1 to count
  std::optional<uint64_t> num_tensors = {};  // of all parts
};
enum class GgufPart : bool { refused, read };

// The getters of metadata are those of GgufMetadata. Move-only; moving leaves all views valid.
class GgufFile final : public ModelSource {
 public:
  // Errors: those of FileMap::open and parse.
  static Result<GgufFile> open(const std::string& path, GgufPart part = GgufPart::refused);

  // The same on bytes in memory, which must outlive the result. `name` is for messages.
  // Errors: corrupt_file, unsupported; the message names file, field and byte.
  static Result<GgufFile> parse(std::span<const std::byte> bytes, std::string name,
                                GgufPart part = GgufPart::refused);

  GgufFile(GgufFile&&) = default;
  GgufFile& operator=(GgufFile&&) = default;

  uint32_t version() const { return version_; }
  const GgufSplit& split() const { return split_; }
  uint64_t alignment() const { return alignment_; }  // of tensor data, bytes
  // Where tensor data starts, bytes; beyond the end in a file that stops after its tables.
  uint64_t data_offset() const { return data_offset_; }
  uint64_t size() const override { return bytes_.size(); }
  std::span<const std::byte> bytes() const { return bytes_; }

  std::string format() const override;
  // In the order of the file.
  std::span<const TensorView> tensors() const override { return tensors_; }
  const TensorView* find_tensor(std::string_view name) const override;
  Result<TensorView> read(const TensorView& tensor, std::vector<std::byte>&) const override {
    return tensor;
  }
  void drop(const TensorView& tensor) const override;
  Result<TokenizerSpec> tokenizer() const override;
  std::vector<ModelFilePart> parts() const override;

 private:
  explicit GgufFile(GgufMetadata metadata) : ModelSource(std::move(metadata)) {}

  std::optional<FileMap> map_;
  uint32_t version_ = 0;
  GgufSplit split_;
  uint64_t alignment_ = 0;
  uint64_t data_offset_ = 0;
  std::span<const std::byte> bytes_;
  std::vector<TensorView> tensors_;
  NameIndex tensor_index_;
};

}  // namespace octavo
