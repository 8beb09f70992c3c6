// A GGUF model, in one file or in several. The parts of a model in several are GGUF files of their
// own, each with some of the tensors; the first has the metadata. They find each other by their
// names (formats/gguf_part_name.h), and what each says of itself must agree with its name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "formats/gguf.h"
#include "formats/model_source.h"

namespace octavo {

class GgufParts final : public ModelSource {
 public:
  // `files`: in the order of the parts. Errors: corrupt_file (a part that is of another model, or
  // stands in another's place; a tensor that two have; too few tensors); they name the file.
  static Result<std::unique_ptr<GgufParts>> create(std::vector<GgufFile> files);

  std::string format() const override;
  uint64_t size() const override;
  std::span<const TensorView> tensors() const override { return tensors_; }
  const TensorView* find_tensor(std::string_view name) const override;
  Result<TensorView> read(const TensorView& tensor, std::vector<std::byte>&) const override {
    return tensor;
  }
  void drop(const TensorView& tensor) const override;
  Result<TokenizerSpec> tokenizer() const override;
  std::vector<ModelFilePart> parts() const override;

 private:
  explicit GgufParts(std::vector<GgufFile> files);
  Result<void> collect();

  std::vector<GgufFile> files_;
  std::vector<TensorView> tensors_;
  NameIndex index_;
};

// The model that a file holds, or is any part of. Errors: those of GgufFile::open and
// GgufParts::create; not_found (parts are missing; they are named).
Result<std::unique_ptr<ModelSource>> open_gguf(const std::string& path);

}  // namespace octavo
