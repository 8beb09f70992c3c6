// A model on disk of whatever format.
#pragma once

#include <memory>
#include <string>

#include "formats/model_source.h"
#include "formats/weight_types.h"

namespace octavo {

// A folder is one of Hugging Face's, a file is GGUF, or any part of a model in several. Errors:
// those of HfModel::open and open_gguf; invalid_argument (types asked of a GGUF file, whose weights
// are as they are).
Result<std::unique_ptr<ModelSource>> open_model(const std::string& path, WeightTypes types = {});

}  // namespace octavo
