// One safetensors file, mapped and checked: named tensors of plain numbers, no metadata that
// matters. Everything in the file is distrusted: what opens without an error can be read without
// further checks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_map.h"
#include "base/result.h"
#include "formats/name_index.h"
#include "tensor/tensor_view.h"

namespace octavo {

// Integers, which folders of packed weights have beside the plain ones.
struct IntegerTensor {
  std::string name;
  size_t width = 4;  // bytes of each: 4 or 8
  // As TensorView has it: shape[0] is the contiguous dimension.
  std::array<int64_t, 4> shape{1, 1, 1, 1};
  int rank = 1;
  std::span<const std::byte> data;  // little-endian, at any byte
};
enum class Integers : bool { refused, read };

class SafetensorsFile {
 public:
  // Errors: those of FileMap::open and parse.
  static Result<SafetensorsFile> open(const std::string& path,
                                      Integers integers = Integers::refused);

  // The same on bytes in memory, which must outlive the result. `name` is for messages.
  // Errors: corrupt_file (tensors that overlap, leave gaps or the file, or are named twice),
  // unsupported (another element type than F32, F16 and BF16, or I32 and I64 where integers are
  // read; a header above 8 MiB).
  static Result<SafetensorsFile> parse(std::span<const std::byte> bytes, std::string name,
                                       Integers integers = Integers::refused);

  SafetensorsFile(SafetensorsFile&&) = default;
  SafetensorsFile& operator=(SafetensorsFile&&) = default;
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  const std::string& file() const { return name_; }
  uint64_t data_offset() const { return data_offset_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  const std::optional<FileMap>& map() const { return map_; }  // nothing if parsed from memory

  std::span<const TensorView> tensors() const { return tensors_; }  // in the order of their data
  std::span<const IntegerTensor> integers() const { return integers_; }
  const TensorView* find(std::string_view name) const;  // nullptr if absent
  void drop(std::span<const std::byte> data) const;     // of a tensor

 private:
  SafetensorsFile() = default;

  std::optional<FileMap> map_;
  std::string name_;
  uint64_t data_offset_ = 0;
  std::span<const std::byte> bytes_;
  std::vector<TensorView> tensors_;
  std::vector<IntegerTensor> integers_;
  NameIndex index_;
};

}  // namespace octavo
