// Models whose chat templates are a list with names.
#pragma once

#include <string_view>

#include "core/tokenizer_spec.h"

namespace octavo {

// "default" is the model's template, "tool_use" the one for conversations with tools; of others the
// name is kept.
void add_named_template(std::string_view name, std::string_view source, TokenizerSpec& spec);

}  // namespace octavo
