// The key-value pairs of a GGUF file. Values stay in the file; a getter reads and converts one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/string_table.h"
#include "formats/gguf_types.h"
#include "formats/name_index.h"

namespace octavo {

// One pair, checked: every length inside `value` fits. The views point into the file.
struct GgufEntry {
  std::string_view key;
  GgufType type;
  GgufType element;                  // of an array: the type of its elements; else the same as type
  uint64_t count;                    // of an array: its length; else 1
  uint64_t offset;                   // of `value` in the file
  std::span<const std::byte> value;  // as stored; of an array: its elements only
};

// Getters: integers of any width convert if the value fits, f64 converts to f32; nothing else does.
// get_X: an absent key is an error. find_X: an absent key is nothing; a wrong type is still an
// error. All errors are corrupt_file and name file, key and byte. Views live as long as the file is
// mapped.
class GgufMetadata {
 public:
  // Errors: a key given twice.
  static Result<GgufMetadata> create(std::string file, std::vector<GgufEntry> entries);

  const std::string& file() const { return file_; }  // its name, for messages

  std::span<const GgufEntry> metadata() const { return entries_; }  // in the order of the file
  const GgufEntry* find(std::string_view key) const;                // nullptr if absent

  Result<uint64_t> get_u64(std::string_view key) const;
  Result<uint32_t> get_u32(std::string_view key) const;
  Result<int32_t> get_i32(std::string_view key) const;
  Result<float> get_f32(std::string_view key) const;  // finite
  Result<bool> get_bool(std::string_view key) const;
  Result<std::string_view> get_string(std::string_view key) const;

  Result<std::optional<uint64_t>> find_u64(std::string_view key) const;
  Result<std::optional<uint32_t>> find_u32(std::string_view key) const;
  Result<std::optional<int32_t>> find_i32(std::string_view key) const;
  Result<std::optional<float>> find_f32(std::string_view key) const;
  Result<std::optional<bool>> find_bool(std::string_view key) const;
  Result<std::optional<std::string_view>> find_string(std::string_view key) const;

  // A number, or an array with the same one for each of so many layers. unsupported: they differ.
  Result<std::optional<uint64_t>> find_layers_u64(std::string_view key, uint64_t num_layers) const;

  // Whole arrays. Floats may be infinite or NaN here.
  Result<std::vector<int32_t>> get_i32s(std::string_view key) const;
  Result<std::vector<uint32_t>> get_u32s(std::string_view key) const;
  Result<std::vector<float>> get_f32s(std::string_view key) const;
  Result<std::vector<bool>> get_bools(std::string_view key) const;
  Result<StringTable> get_strings(std::string_view key) const;

  // The error that a caller reports about the value of a key: "FILE: key 'K' at byte N WHY".
  tl::unexpected<Error> error(const GgufEntry& entry, std::string_view why,
                              ErrorCode code = ErrorCode::corrupt_file) const;

 protected:
  GgufMetadata() = default;

 private:
  Result<const GgufEntry*> require(std::string_view key) const;

  std::string file_;
  std::vector<GgufEntry> entries_;
  NameIndex index_;
};

// For listings: "u32", "string[49152]" and so on.
std::string type_text(const GgufEntry& entry);

// For listings: a number, true or false, a quoted string (cut after max_bytes), "string[49152]" for
// an array.
std::string value_text(const GgufEntry& entry, size_t max_bytes = 80);

}  // namespace octavo
