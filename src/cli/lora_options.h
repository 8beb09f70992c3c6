// The adapters of `octavo serve`.
#pragma once

#include <string>

#include "cli/option_values.h"
#include "engine/engine_options.h"
#include "server/serve_options.h"

namespace octavo::cli {

// "NAME=PATH", or vLLM's {"name": "NAME", "path": "PATH"}. Errors: invalid_argument.
Result<LoraModule> parse_lora_module(const std::string& text);

// Errors: invalid_argument.
Result<LoraOptions> read_lora_options(const OptionValues& options);

}  // namespace octavo::cli
