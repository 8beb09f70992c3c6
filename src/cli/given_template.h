// --chat-template: a template in place of the model's.
#pragma once

#include <string>

#include "base/result.h"
#include "engine/load.h"

namespace octavo::cli {

// given: the template itself, which has '{{' or '{%', the name of a built-in one
// (text/builtin_templates.h), or a file's name. Empty stays empty.
Result<std::string> read_template(const std::string& given);

// Gives the engine this template, unless it is empty. Errors: those of ChatTemplate::parse.
Result<void> use_template(LoadedEngine& engine, const std::string& source);

}  // namespace octavo::cli
