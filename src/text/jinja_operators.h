// Operators of expressions on values: Python's rules, with every limit charged to the context.
#pragma once

#include <string_view>

#include "base/result.h"
#include "text/jinja_context.h"
#include "text/jinja_value.h"

namespace octavo::jinja {

enum class BinaryOp { add, subtract, multiply, divide, floor_divide, modulo, power };
enum class CompareOp { equal, not_equal, less, less_equal, greater, greater_equal, in, not_in };

Result<Value> binary(Context& context, BinaryOp op, const Value& left, const Value& right);
Result<Value> negate(Context& context, const Value& value);
Result<Value> plus(Context& context, const Value& value);

// True if `left op right`. Marks of strings play no part.
Result<bool> compare(Context& context, CompareOp op, const Value& left, const Value& right);
Result<bool> equals(Context& context, const Value& left, const Value& right);
Result<bool> less_than(Context& context, const Value& left, const Value& right);
Result<bool> contains(Context& context, const Value& container, const Value& item);

Result<Value> replace_text(Context& context, const Text& text, const Text& from, const Text& to,
                           int64_t limit);

}  // namespace octavo::jinja
