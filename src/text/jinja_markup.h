// HTML as Jinja has it: a text with the mark counts as escaped, and what is joined to it is escaped
// on the way. Templates for chats are rendered without escaping; only these filters ask for it.
#pragma once

#include "text/jinja_callable.h"
#include "text/jinja_context.h"

namespace octavo::jinja {

// The text as markup: & < > " ' as entities, unless it is markup already.
Result<Text> escaped(Context& context, const Text& text);
// Of any value, as str() gives it.
Result<Value> escape_value(Context& context, const Value& value);

// The values of '%' or the arguments of a method, escaped where they would be joined to markup:
// numbers stay what they are, for they may be formatted as such.
Result<Value> escape_items(Context& context, const Value& values);
Result<Value> invoke_on_markup(Context& context, const Function& method, const Value& self,
                               const Arguments& arguments);

std::span<const Function> markup_filters();  // e, escape, forceescape, safe, striptags

}  // namespace octavo::jinja
