// A model as Hugging Face's programs store it: a folder with config.json, safetensors and
// tokenizer.json. It is shown as a GGUF file of the same model would be: names, shapes, row orders
// and keys are GGUF's.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/hf_metadata.h"
#include "formats/hf_packed.h"
#include "formats/model_source.h"
#include "formats/shards.h"
#include "formats/weight_types.h"

namespace octavo {

class HfModel final : public ModelSource {
 public:
  // Errors: not_found, io_error (a file is not there), corrupt_file, unsupported (a family, field
  // or tensor that is not known; a matrix that cannot have the wanted type); they name file and
  // thing.
  static Result<std::unique_ptr<HfModel>> open(const std::string& folder, WeightTypes types = {});

  std::string format() const override;
  uint64_t size() const override;
  std::span<const TensorView> tensors() const override { return tensors_; }
  const TensorView* find_tensor(std::string_view name) const override;
  Result<TensorView> read(const TensorView& tensor, std::vector<std::byte>& room) const override;
  std::span<const int32_t> input_order(const TensorView& tensor) const override;
  void drop(const TensorView& tensor) const override;
  std::string spelling(std::string_view name) const override;
  Result<TokenizerSpec> tokenizer() const override;
  std::vector<ModelFilePart> parts() const override;
  std::string conversion() const override;
  std::vector<std::string> notes() const override;

 private:
  // A tensor of the files, or several that are one packed matrix.
  struct Part {
    std::string name;  // as if it was plain; empty: there is no such part
    ShardTensor plain{};
    std::optional<HfPackedMatrix> packed = {};

    std::array<int64_t, 4> shape() const;
    int rank() const { return packed ? 2 : plain.view->rank; }
  };

  // How a tensor is made from those of the files: theirs in turn, row by row.
  struct Recipe {
    std::vector<Part> parts;
    int permuted_heads = 0;  // rows of so many heads are brought into GGUF's order; 0: they are
    bool plus_one = false;
  };

  HfModel(GgufMetadata metadata, HfMetadata hf, Shards shards, FileMap config);
  Result<std::vector<Part>> find_parts() const;
  Result<void> add_part(Part part);
  bool has_bias(std::string_view name) const;
  Result<void> check_unused_bias(const Part& part) const;
  Result<void> check_biases() const;
  Result<void> add_tensors(const WeightTypes& types);
  Result<void> check_parts(const TensorView& tensor, const Recipe& recipe) const;
  Result<void> finish(size_t index, const WeightTypes& types);
  Result<DType> type_of(const TensorView& tensor, const Recipe& recipe,
                        const WeightTypes& types) const;
  Result<void> read_permuted_bias(const TensorView& source, std::byte* out) const;
  Result<void> read_part(const TensorView& tensor, const Recipe& recipe, const Part& part,
                         std::byte* out) const;
  bool lies_ready(const TensorView& tensor, const Recipe& recipe) const;
  tl::unexpected<Error> tensor_error(std::string_view hf_name, std::string_view what,
                                     ErrorCode code) const;

  HfMetadata hf_;
  Shards shards_;
  FileMap config_;
  std::vector<TensorView> tensors_;
  std::vector<Recipe> recipes_;            // one per tensor
  std::map<std::string, size_t> numbers_;  // of tensors_, while they are found
  NameIndex index_;
  int num_of_images_ = 0;  // tensors that are left out
  std::string conversion_;
};

}  // namespace octavo
