#include "text/jinja_filters.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/jinja_access.h"
#include "text/jinja_format.h"
#include "text/jinja_markup.h"
#include "text/jinja_operators.h"
#include "text/jinja_print.h"
#include "text/jinja_strings.h"

namespace octavo::jinja {
namespace {

// Looking up and writing every character costs about as much as copying this many.
constexpr size_t kCaseCost = 16;

// The input as str() gives it, changed by `change`, which takes `cost` times as long as a copy.
template <class Change>
Result<Value> change_text(const Call& call, size_t cost, Change change) {
  OCTAVO_TRY(const Text text, to_text(call.context, call.self));
  OCTAVO_CHECK_OK(call.context.handle_bytes(cost * text.size()));
  return call.context.text(change(text));
}

Result<Value> do_upper(const Call& call) {
  return change_text(call, kCaseCost, [](const Text& t) { return change_case(t, Case::upper); });
}
Result<Value> do_lower(const Call& call) {
  return change_text(call, kCaseCost, [](const Text& t) { return change_case(t, Case::lower); });
}
Result<Value> do_title(const Call& call) {
  return change_text(call, kCaseCost, [](const Text& text) {
    Text result = title_words(text);
    result.set_markup(false);  // the reference joins characters
    return result;
  });
}
Result<Value> do_capitalize(const Call& call) { return change_text(call, kCaseCost, capitalize); }

Result<Value> do_string(const Call& call) {
  return change_text(call, 1, [](const Text& text) { return text; });
}

Result<Value> do_trim(const Call& call) {
  if (!call.arguments.given(0))
    return change_text(call, 1, [](const Text& text) { return strip(text, Side::both, {}); });
  OCTAVO_TRY(const Text* chars, text_argument(call, 0));
  OCTAVO_TRY(const Text text, to_text(call.context, call.self));
  OCTAVO_CHECK_OK(call.context.handle_bytes(text.size() * (1 + chars->size())));
  return call.context.text(strip(text, Side::both, chars->bytes()));
}

Result<Value> do_replace(const Call& call) {
  OCTAVO_TRY(const Text text, to_text(call.context, call.self));
  OCTAVO_TRY(const Text from, to_text(call.context, *call.arguments[0]));
  OCTAVO_TRY(const Text to, to_text(call.context, *call.arguments[1]));
  OCTAVO_TRY(const int64_t limit, integer_or(call, 2, -1));
  return replace_text(call.context, text, from, to, limit);
}

Result<Text> spaces(Context& context, int64_t count) {
  if (count > static_cast<int64_t>(kMaxStringBytes))
    return context.exceeded(fmt::format("a string of more than {} bytes", kMaxStringBytes));
  const auto size = static_cast<size_t>(std::max<int64_t>(count, 0));
  OCTAVO_CHECK_OK(context.handle_bytes(size));
  return Text(std::string(size, ' '), true);
}

// A number of spaces, or the text itself; `otherwise` spaces if not given.
Result<Text> indent_argument(const Call& call, size_t parameter, int64_t otherwise) {
  const Value* value = call.arguments[parameter];
  if (value && as_text(*value)) return to_text(call.context, *value);
  OCTAVO_TRY(const int64_t count, integer_or(call, parameter, otherwise));
  return spaces(call.context, count);
}

Result<Value> do_indent(const Call& call) {
  const Text* text = as_text(call.self);
  if (!text)
    return call.context.error(fmt::format("a {} cannot be indented", type_name(call.self)));
  OCTAVO_TRY(const Text indent, indent_argument(call, 0, 4));
  const bool first = boolean_or(call, 1, false);
  const bool blank = boolean_or(call, 2, false);
  OCTAVO_TRY(Text input, to_text(call.context, call.self));
  input.append("\n", !text->has_content());  // the reference does so: a trailing newline is kept
  Text result;
  bool is_first = true;
  for (const Text& line : split_lines(input, false)) {
    if (!is_first) result.append("\n", !text->has_content());
    if (is_first ? first : blank || !line.empty())
      OCTAVO_CHECK_OK(call.context.append(result, indent));
    OCTAVO_CHECK_OK(call.context.append(result, line));
    is_first = false;
  }
  result.set_markup(text->is_markup());
  return call.context.text(std::move(result));
}

// The two strings of `separators`, a list or tuple.
Result<void> read_separators(const Call& call, const Value& value, JsonStyle& style) {
  const Sequence* pair = as_sequence(value);
  const Text* item = pair && pair->items.size() == 2 ? as_text(pair->items[0]) : nullptr;
  const Text* key = item ? as_text(pair->items[1]) : nullptr;
  if (!key) return call.context.error("'separators' of tojson must be two strings");
  OCTAVO_CHECK_OK(call.context.handle_bytes(item->size() + key->size()));
  style.item_separator = item->bytes();
  style.key_separator = key->bytes();
  style.is_content |= item->has_content() || key->has_content();
  return {};
}

Result<Value> do_tojson(const Call& call) {
  JsonStyle style;
  style.ascii_only = boolean_or(call, 0, false);
  style.sort_keys = boolean_or(call, 3, false);
  if (call.arguments.given(1)) {
    OCTAVO_TRY(const Text indent, indent_argument(call, 1, 0));
    style.indent = std::string(indent.bytes());
    style.is_content |= indent.has_content();
    style.item_separator = ",";
  }
  if (call.arguments.given(2)) OCTAVO_CHECK_OK(read_separators(call, *call.arguments[2], style));
  OCTAVO_TRY(Text json, to_json(call.context, call.self, style));
  return call.context.text(std::move(json));
}

Result<Value> do_default(const Call& call) {
  const bool missing =
      is<Undefined>(call.self) || (boolean_or(call, 1, false) && !truthy(call.self));
  if (!missing) return call.self;
  return call.arguments[0] ? *call.arguments[0] : call.context.text("", true);
}

Result<Value> do_format(const Call& call) {
  const Arguments& all = call.arguments.all();
  OCTAVO_TRY(const Text pattern, to_text(call.context, call.self));
  if (!all.positional.empty() && !all.named.empty())
    return call.context.error("format() takes values with names or without, not both");
  if (all.named.empty()) {
    OCTAVO_TRY(const Value values, call.context.sequence(Sequence::Kind::tuple, all.positional));
    return percent_format(call.context, pattern, values);
  }
  std::vector<std::pair<Value, Value>> entries;
  for (const auto& [name, value] : all.named) {
    OCTAVO_TRY(Value key, call.context.text(name, true));
    entries.emplace_back(std::move(key), value);
  }
  OCTAVO_TRY(const Value values, call.context.dict(std::move(entries)));
  return percent_format(call.context, pattern, values);
}

Result<Value> do_center(const Call& call) {
  OCTAVO_TRY(Text text, to_text(call.context, call.self));
  OCTAVO_TRY(const int64_t width, integer_or(call, 0, 80));
  OCTAVO_TRY(const Value whole, call.context.text(std::move(text)));
  FieldStyle style{.align = 'c'};
  style.width = static_cast<size_t>(std::max<int64_t>(width, 0));
  const bool is_markup = as_text(whole)->is_markup();
  OCTAVO_TRY(text, styled(call.context, whole, style));
  text.set_markup(is_markup);
  return call.context.text(std::move(text));
}

Result<Value> do_wordcount(const Call& call) {
  OCTAVO_TRY(const Text text, to_text(call.context, call.self));
  OCTAVO_CHECK_OK(call.context.handle_bytes(text.size()));
  const std::string_view bytes = text.bytes();
  int64_t words = 0;
  bool inside = false;
  for (size_t at = 0; at < bytes.size(); at += char_bytes(bytes[at])) {
    const char32_t c = decode_char(bytes, at);
    const bool in_word = is_alpha(c) || is_digit(c) || c == '_';
    words += in_word && !inside;
    inside = in_word;
  }
  return words;
}

// Cuts a text that is longer than length + leeway: at a space, unless killwords.
Result<Value> do_truncate(const Call& call) {
  const Text* text = as_text(call.self);
  if (!text)
    return call.context.error(fmt::format("a {} cannot be truncated", type_name(call.self)));
  OCTAVO_TRY(const int64_t length, integer_or(call, 0, 255));
  OCTAVO_TRY(const int64_t leeway, integer_or(call, 3, 5));
  Text end("...", true);
  if (call.arguments.given(2)) {
    OCTAVO_TRY(const Text* given, text_argument(call, 2));
    end = *given;
  }
  OCTAVO_CHECK_OK(call.context.handle_bytes(text->size() + end.size()));
  const auto kept = length - static_cast<int64_t>(count_chars(end.bytes()));
  if (kept < 0 || leeway < 0) return call.context.error("truncate() to less than its end");
  if (static_cast<int64_t>(count_chars(text->bytes())) - leeway <= length) return call.self;
  size_t cut = byte_of_char(text->bytes(), static_cast<size_t>(kept));
  if (!boolean_or(call, 1, false)) cut = std::min(cut, text->bytes().substr(0, cut).rfind(' '));
  Text result = text->slice(0, cut);
  if (text->is_markup()) {
    OCTAVO_TRY(end, escaped(call.context, end));
  }
  result.append(end);
  return call.context.text(std::move(result));
}

// Of a dict only its methods, not what it holds.
Result<Value> do_attr(const Call& call) {
  OCTAVO_TRY(const Text* name, text_argument(call, 0));
  if (!as_dict(call.self)) return get_attribute(call.context, call.self, name->bytes());
  const Function* method = find_method(call.self, name->bytes());
  if (!method || method->mutates) return Value(undefined("a dict has no such attribute"));
  return call.context.method(call.self, *method);
}

constexpr Function kTextFilters[] = {
    {"attr", "name", 1, do_attr},
    {"capitalize", "", 0, do_capitalize},
    {"center", "width", 0, do_center},
    {"d", "default_value boolean", 0, do_default},
    {"default", "default_value boolean", 0, do_default},
    {"filesizeformat", "*", 0},
    {"format", "*", 0, do_format},
    {"indent", "width first blank", 0, do_indent},
    {"lower", "", 0, do_lower},
    {"pprint", "*", 0},
    {"random", "*", 0},
    {"replace", "old new count", 2, do_replace},
    {"string", "", 0, do_string},
    {"title", "", 0, do_title},
    {"tojson", "ensure_ascii indent separators sort_keys", 0, do_tojson},
    {"trim", "chars", 0, do_trim},
    {"truncate", "length killwords end leeway", 0, do_truncate},
    {"upper", "", 0, do_upper},
    {"urlencode", "*", 0},
    {"wordcount", "", 0, do_wordcount},
    {"wordwrap", "*", 0},
};

}  // namespace

std::span<const Function> text_filters() { return kTextFilters; }

const Function* find_filter(std::string_view name) {
  for (const auto table :
       {text_filters(), number_filters(), sequence_filters(), group_filters(), markup_filters()})
    if (const Function* found = find_function(table, name)) return found;
  return nullptr;
}

}  // namespace octavo::jinja
