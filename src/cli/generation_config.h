// Defaults of requests that the makers of a model give: generation_config.json.
#pragma once

#include <string>

#include "base/result.h"
#include "core/sampling_params.h"

namespace octavo {

// which: "none", or "vllm", which is what vLLM calls that; "auto": of the known models, else of a
// generation_config.json beside the model's file, else none; or the path of such a file, or of its
// folder. Other members of it are for other programs. Errors: not_found, corrupt_file,
// invalid_argument.
Result<SamplingParams> generation_defaults(const std::string& which, const std::string& model_path);

}  // namespace octavo
