#include "formats/open_model.h"

#include <fmt/format.h>

#include <filesystem>

#include "formats/gguf_parts.h"
#include "formats/hf_model.h"

namespace octavo {

Result<std::unique_ptr<ModelSource>> open_model(const std::string& path, WeightTypes types) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return HfModel::open(path, types);
  OCTAVO_TRY(std::unique_ptr<ModelSource> model, open_gguf(path));
  if (types.matrices)
    return fail(ErrorCode::invalid_argument,
                fmt::format("{}: the weights of a GGUF file are used as they are; --quantization, "
                            "and --dtype float16 or bfloat16, are for folders of safetensors",
                            path));
  return model;
}

}  // namespace octavo
