// object.name, object[key] and object[start:stop:step].
#pragma once

#include <string_view>

#include "text/jinja_context.h"
#include "text/jinja_value.h"

namespace octavo::jinja {

// A missing attribute or item is undefined; asking an undefined value for one is an error.
Result<Value> get_attribute(Context& context, const Value& object, std::string_view name);
Result<Value> get_item(Context& context, const Value& object, const Value& key);
// Each bound is an int, or none where it was left out.
struct SliceBounds {
  Value start, stop, step;
};
Result<Value> get_slice(Context& context, const Value& object, const SliceBounds& bounds);

// "a.b.0" of object, as filters' `attribute` argument means it; also a number.
Result<Value> get_path(Context& context, const Value& object, const Value& path);

}  // namespace octavo::jinja
