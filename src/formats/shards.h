// The tensors of a Hugging Face folder: those of the files that model.safetensors.index.json lists,
// or, without an index, of one file model.safetensors. Where files contradict each other the index
// is right, and a note says what is ignored.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/name_index.h"
#include "formats/safetensors.h"

namespace octavo {

// A tensor, and the file that it lies in.
struct ShardTensor {
  const TensorView* view;
  const SafetensorsFile* file;
};

// Files that are listed without a path and end in ".safetensors", without repetition.
// weight_map: the index's text. Errors: corrupt_file, unsupported; they name the file `name`.
struct ShardIndex {
  struct Entry {
    std::string tensor;
    size_t file;  // number in `files`
  };
  std::vector<std::string> files;
  std::vector<Entry> entries;

  static Result<ShardIndex> parse(std::string_view text, const std::string& name);
};

struct ShardIntegers {
  const IntegerTensor* view;
  const SafetensorsFile* file;
};

class Shards {
 public:
  // Errors: not_found (no weights there), those of SafetensorsFile::open and ShardIndex::parse,
  // corrupt_file (index and files do not say the same about a tensor, which is named).
  static Result<Shards> open(const std::string& folder, Integers integers = Integers::refused);

  std::span<const SafetensorsFile> files() const { return files_; }
  std::span<const ShardTensor> tensors() const { return tensors_; }
  std::span<const ShardIntegers> integers() const { return integers_; }
  std::span<const std::string> notes() const { return notes_; }

 private:
  Shards() = default;
  Result<void> open_listed(const std::string& folder, const ShardIndex& index, Integers integers);
  void take_all();
  Result<void> take_listed(const ShardIndex& index, const std::string& name);
  void note_other_files(const std::string& folder);

  std::vector<SafetensorsFile> files_;  // not changed after tensors_ points into it
  std::vector<ShardTensor> tensors_;
  std::vector<ShardIntegers> integers_;
  std::vector<std::string> notes_;
};

}  // namespace octavo
