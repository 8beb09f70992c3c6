// A GGUF model file (version 2 or 3, little-endian), mapped and checked. Owns the mapping; tensors
// are views into it. Everything in the file is distrusted: what opens without an error can be read
// without further checks. A file without tensors (a vocabulary only) opens; one part of a split
// model does not.
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
#include "formats/gguf_metadata.h"
#include "formats/name_index.h"
#include "tensor/tensor_view.h"

namespace octavo {

// The getters of metadata are those of GgufMetadata. Move-only; moving leaves all views valid.
class GgufFile : public GgufMetadata {
 public:
  // Errors: those of FileMap::open and parse.
  static Result<GgufFile> open(const std::string& path);

  // The same on bytes in memory, which must outlive the result. `name` is for messages.
  // Errors: corrupt_file, unsupported; the message names file, field and byte.
  static Result<GgufFile> parse(std::span<const std::byte> bytes, std::string name);

  GgufFile(GgufFile&&) = default;
  GgufFile& operator=(GgufFile&&) = default;
  GgufFile(const GgufFile&) = delete;
  GgufFile& operator=(const GgufFile&) = delete;

  uint32_t version() const { return version_; }
  uint64_t alignment() const { return alignment_; }  // of tensor data, bytes
  // Where tensor data starts, bytes; beyond the end in a file that stops after its tables.
  uint64_t data_offset() const { return data_offset_; }
  uint64_t size() const { return bytes_.size(); }  // of the file, bytes
  std::span<const std::byte> bytes() const { return bytes_; }
  // Which file it is; nothing if it was parsed from memory.
  std::optional<FileIdentity> identity() const {
    return map_ ? std::optional(map_->identity()) : std::nullopt;
  }

  std::span<const TensorView> tensors() const { return tensors_; }  // in the order of the file
  const TensorView* find_tensor(std::string_view name) const;       // nullptr if absent

  // Gives the memory of a tensor's mapped pages back, once it has been copied elsewhere. It can
  // still be read.
  void drop(const TensorView& tensor) const;

 private:
  explicit GgufFile(GgufMetadata metadata) : GgufMetadata(std::move(metadata)) {}

  std::optional<FileMap> map_;
  uint32_t version_ = 0;
  uint64_t alignment_ = 0;
  uint64_t data_offset_ = 0;
  std::span<const std::byte> bytes_;
  std::vector<TensorView> tensors_;
  NameIndex tensor_index_;
};

}  // namespace octavo
