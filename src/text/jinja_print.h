// Values as text: str(), repr() and json.dumps() of Python.
#pragma once

#include <optional>
#include <string>

#include "text/jinja_context.h"
#include "text/jinja_text.h"
#include "text/jinja_value.h"

namespace octavo::jinja {

std::string float_repr(
    double number);  // shortest digits that read back the same: 1.0, 1e+16, 1e-05

// str(value). Strings keep their marks; a list or dict is content as a whole as soon as it holds
// any content. Objects without a stable Python spelling (generators, functions) are refused.
Result<Text> to_text(Context& context, const Value& value);

// repr(value): as it stands in a printed list.
Result<Text> to_repr(Context& context, const Value& value);

struct JsonStyle {
  bool ascii_only = false;
  bool sort_keys = false;
  std::optional<std::string> indent;  // one level of it; unset: everything on one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool is_content = false;  // the indent or a separator came from the conversation
};
// json.dumps(value). Content as a whole as soon as the value holds any content.
Result<Text> to_json(Context& context, const Value& value, const JsonStyle& style);

}  // namespace octavo::jinja
