// A model on disk of whatever format.
#pragma once

#include <memory>
#include <string>

#include "formats/model_source.h"
#include "formats/weight_types.h"

namespace octavo {

// A folder is one of Hugging Face's, a file is GGUF, or any part of a model in several. The weights
// of GGUF are as they are: of types it ignores f16 and bf16. Errors: those of HfModel::open and
// open_gguf; invalid_argument (quantisation asked of a GGUF file).
Result<std::unique_ptr<ModelSource>> open_model(const std::string& path, WeightTypes types = {});

}  // namespace octavo
