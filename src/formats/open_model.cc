#include "formats/open_model.h"

#include <fmt/format.h>

#include <filesystem>

#include "formats/gguf_parts.h"
#include "formats/hf_model.h"

namespace octavo {
namespace {

bool is_quantized(const WeightTypes& types) {
  return types.matrices && *types.matrices != DType::f16 && *types.matrices != DType::bf16;
}

}  // namespace

Result<std::unique_ptr<ModelSource>> open_model(const std::string& path, WeightTypes types) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return HfModel::open(path, types);
  OCTAVO_TRY(std::unique_ptr<ModelSource> model, open_gguf(path));
  if (is_quantized(types))
    return fail(ErrorCode::invalid_argument,
                fmt::format("{}: the weights of a GGUF file are used as they are; --quantization "
                            "is for folders of safetensors, and `octavo quantize` makes a smaller "
                            "file of one",
                            path));
  return model;
}

}  // namespace octavo
