#include "text/jinja_markup.h"

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja_print.h"
#include "text/jinja_strings.h"

namespace octavo::jinja {
namespace {

std::string_view entity_of(char byte) {
  switch (byte) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&#34;";
    case '\'':
      return "&#39;";
    default:
      return "";
  }
}

Result<Text> replaced_by_entities(Context& context, const Text& text) {
  Text result;
  size_t begin = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const std::string_view entity = entity_of(text.bytes()[at]);
    if (entity.empty()) continue;
    result.append(text, begin, at);
    result.append(entity, text.is_template_at(at));
    begin = at + 1;
  }
  result.append(text, begin, text.size());
  OCTAVO_CHECK_OK(context.handle_bytes(text.size() + result.size()));
  result.set_markup(true);
  return result;
}

Result<Value> as_markup(Context& context, Text text) {
  text.set_markup(true);
  return context.text(std::move(text));
}

// What markup makes of itself is markup, item by item.
Result<Value> mark(Context& context, const Value& value) {
  if (const Text* text = as_text(value)) return as_markup(context, *text);
  const Sequence* sequence = as_sequence(value);
  if (!sequence) return value;
  std::vector<Value> items;
  for (const Value& item : sequence->items) {
    OCTAVO_TRY(Value marked, mark(context, item));
    items.push_back(std::move(marked));
  }
  return context.sequence(sequence->kind, std::move(items));
}

bool stays(const Value& value) {
  return is<int64_t>(value) || is<double>(value) || is<bool>(value);
}

Result<Value> escape_item(Context& context, const Value& value) {
  return stays(value) ? Result<Value>(value) : escape_value(context, value);
}

Result<Value> do_escape(const Call& call) { return escape_value(call.context, call.self); }

Result<Value> do_forceescape(const Call& call) {
  OCTAVO_TRY(Text text, to_text(call.context, call.self));
  OCTAVO_TRY(text, replaced_by_entities(call.context, text));
  return call.context.text(std::move(text));
}

Result<Value> do_safe(const Call& call) {
  OCTAVO_TRY(Text text, to_text(call.context, call.self));
  OCTAVO_CHECK_OK(call.context.handle_bytes(text.size()));
  return as_markup(call.context, std::move(text));
}

constexpr Function kMarkupFilters[] = {
    {"e", "", 0, do_escape},  {"escape", "", 0, do_escape}, {"forceescape", "", 0, do_forceescape},
    {"safe", "", 0, do_safe}, {"striptags", "*", 0},        {"urlize", "*", 0},
    {"xmlattr", "*", 0},
};

}  // namespace

Result<Text> escaped(Context& context, const Text& text) {
  return text.is_markup() ? Result<Text>(text) : replaced_by_entities(context, text);
}

Result<Value> escape_value(Context& context, const Value& value) {
  OCTAVO_TRY(Text text, to_text(context, value));
  OCTAVO_TRY(text, escaped(context, text));
  return context.text(std::move(text));
}

Result<Value> escape_items(Context& context, const Value& values) {
  if (const Dict* dict = as_dict(values)) {
    auto entries = dict->entries;
    for (auto& [key, value] : entries) {
      OCTAVO_TRY(value, escape_item(context, value));
    }
    return context.dict(std::move(entries));
  }
  const Sequence* sequence = as_sequence(values);
  if (!sequence || sequence->kind != Sequence::Kind::tuple) return escape_item(context, values);
  std::vector<Value> items = sequence->items;
  for (Value& item : items) {
    OCTAVO_TRY(item, escape_item(context, item));
  }
  return context.sequence(sequence->kind, std::move(items));
}

Result<Value> invoke_on_markup(Context& context, const Function& method, const Value& self,
                               const Arguments& arguments) {
  Arguments given = arguments;
  if (method.name == "format" || method.name == "replace") {
    const size_t first = method.name == "replace" ? 1 : 0;
    for (size_t i = first; i < given.positional.size(); ++i) {
      OCTAVO_TRY(given.positional[i], escape_item(context, given.positional[i]));
    }
    for (auto& [name, value] : given.named) {
      OCTAVO_TRY(value, escape_item(context, value));
    }
  } else if (method.name == "join" && !given.positional.empty()) {
    OCTAVO_TRY(const SequencePtr items, elements(context, given.positional[0]));
    OCTAVO_TRY(const Value all, context.sequence(Sequence::Kind::tuple, items->items));
    OCTAVO_TRY(given.positional[0], escape_items(context, all));
  }
  OCTAVO_TRY(const Value result, invoke(context, method, self, given));
  return mark(context, result);
}

std::span<const Function> markup_filters() { return kMarkupFilters; }

}  // namespace octavo::jinja
