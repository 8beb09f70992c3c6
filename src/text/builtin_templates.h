// Chat templates of the usual families, for models whose files have none. Written for this project;
// each renders what the family's models were trained on.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "text/tokenizer.h"

namespace octavo {

struct BuiltinTemplate {
  std::string_view name;
  std::string_view marker;  // a control token of models that were trained with it; may be empty
  std::string_view source;  // Jinja
};

std::span<const BuiltinTemplate> builtin_templates();

// nullptr: there is none of this name.
const BuiltinTemplate* find_builtin_template(std::string_view name);

// "alpaca, chatml, ...", for messages.
std::string builtin_template_names();

// Which of them to try with a model that has no template, for messages.
std::string template_advice(const Tokenizer& tokenizer);

}  // namespace octavo
