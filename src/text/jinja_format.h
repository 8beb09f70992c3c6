// Python's two ways of writing values into a pattern. What the pattern says keeps the pattern's
// marks, and the values keep theirs.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "text/jinja_callable.h"
#include "text/jinja_context.h"

namespace octavo::jinja {

// How one value is written: a format specification of Python's, after either way of spelling it.
struct FieldStyle {
  std::string fill = " ";  // one character
  char align = '\0';       // '<', '>', '^', '=' (between sign and digits); 0: as the type has it
  char sign = '-';         // '-': only negative numbers have one; '+', ' '
  bool alternate = false;  // '#'
  char grouping = '\0';    // ',' or '_' between thousands
  size_t width = 0;        // characters
  std::optional<size_t> precision = {};
  char type = '\0';
  bool is_template = true;  // who wrote the fill
};

// The value in that style. Errors: template_error for a style that does not fit the value.
Result<Text> styled(Context& context, const Value& value, const FieldStyle& style);

// `pattern % values`: a tuple is many values, a dict gives those of %(name)s.
Result<Value> percent_format(Context& context, const Text& pattern, const Value& values);
// pattern.format(...).
Result<Value> brace_format(Context& context, const Text& pattern, const Arguments& arguments);

}  // namespace octavo::jinja
