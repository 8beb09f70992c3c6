// Tokens into a tree. What this interpreter does not know is refused here, by name and line.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "text/jinja_ast.h"

namespace octavo::jinja {

struct ParsedTemplate {
  Body body;
  std::set<std::string, std::less<>> variables;  // names that it reads, of any scope
};

// template_error: not Jinja; unsupported: Jinja, but not done here (or not known to the reference
// either); resource_exhausted: kMaxSourceBytes, kMaxParseDepth, kMaxExpressionDepth.
Result<ParsedTemplate> parse_template(std::string_view source, std::string_view name);

}  // namespace octavo::jinja
