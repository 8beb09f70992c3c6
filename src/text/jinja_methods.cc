// Methods of strings, lists, dicts and loops: Python's names and parameters.
#include <fmt/format.h>

#include <algorithm>

#include "text/jinja_callable.h"
#include "text/jinja_operators.h"
#include "text/jinja_strings.h"

namespace octavo::jinja {
namespace {

const Text& self_text(const Call& call) { return *as_text(call.self); }
const Dict& self_dict(const Call& call) { return *as_dict(call.self); }

Result<std::optional<std::string_view>> optional_text(const Call& call, size_t parameter) {
  if (!call.arguments.given(parameter)) return std::nullopt;
  OCTAVO_TRY(const Text* text, text_argument(call, parameter));
  return text->bytes();
}

Result<Value> list_of(Context& context, std::vector<Text> texts) {
  std::vector<Value> items;
  for (Text& text : texts) {
    OCTAVO_TRY(Value item, context.text(std::move(text)));
    items.push_back(std::move(item));
  }
  return context.sequence(Sequence::Kind::list, std::move(items));
}

Result<Value> split_method(const Call& call, bool from_right) {
  OCTAVO_TRY(const auto separator, optional_text(call, 0));
  if (separator && separator->empty()) return call.context.error("an empty separator");
  OCTAVO_TRY(const int64_t limit, integer_or(call, 1, -1));
  const size_t size = self_text(call).size();
  OCTAVO_CHECK_OK(call.context.handle_bytes(size));
  if (from_right && separator)
    OCTAVO_CHECK_OK(call.context.spend(size * std::min<size_t>(separator->size(), kMaxSteps) / 64));
  return list_of(call.context, split(self_text(call), separator, limit, from_right));
}
Result<Value> do_split(const Call& call) { return split_method(call, false); }
Result<Value> do_rsplit(const Call& call) { return split_method(call, true); }

Result<Value> do_splitlines(const Call& call) {
  return list_of(call.context, split_lines(self_text(call), boolean_or(call, 0, false)));
}

Result<Value> strip_method(const Call& call, Side side) {
  OCTAVO_TRY(const auto chars, optional_text(call, 0));
  OCTAVO_CHECK_OK(
      call.context.handle_bytes(self_text(call).size() * (1 + (chars ? chars->size() : 0))));
  return call.context.text(strip(self_text(call), side, chars));
}
Result<Value> do_strip(const Call& call) { return strip_method(call, Side::both); }
Result<Value> do_lstrip(const Call& call) { return strip_method(call, Side::left); }
Result<Value> do_rstrip(const Call& call) { return strip_method(call, Side::right); }

bool has_affix(std::string_view text, std::string_view affix, bool front) {
  return front ? text.starts_with(affix) : text.ends_with(affix);
}

Result<Value> affix_method(const Call& call, bool front) {
  const Value& argument = *call.arguments[0];
  const Sequence* tuple = as_sequence(argument);
  if (!tuple || tuple->kind != Sequence::Kind::tuple) {
    OCTAVO_TRY(const Text* affix, text_argument(call, 0));
    return has_affix(self_text(call).bytes(), affix->bytes(), front);
  }
  for (const Value& item : tuple->items) {
    const Text* affix = as_text(item);
    if (!affix) return call.context.error("a tuple with an item that is not a str");
    if (has_affix(self_text(call).bytes(), affix->bytes(), front)) return true;
  }
  return false;
}
Result<Value> do_startswith(const Call& call) { return affix_method(call, true); }
Result<Value> do_endswith(const Call& call) { return affix_method(call, false); }

// Every character is looked up and written, which costs about as much as copying 16 of them.
template <class Change>
Result<Value> change_characters(const Call& call, Change change) {
  OCTAVO_CHECK_OK(call.context.handle_bytes(16 * self_text(call).size()));
  return call.context.text(change(self_text(call)));
}
Result<Value> do_upper(const Call& call) {
  return change_characters(call, [](const Text& t) { return change_case(t, Case::upper); });
}
Result<Value> do_lower(const Call& call) {
  return change_characters(call, [](const Text& t) { return change_case(t, Case::lower); });
}
Result<Value> do_title(const Call& call) { return change_characters(call, title); }
Result<Value> do_capitalize(const Call& call) { return change_characters(call, capitalize); }

Result<Value> do_replace(const Call& call) {
  OCTAVO_TRY(const Text* from, text_argument(call, 0));
  OCTAVO_TRY(const Text* to, text_argument(call, 1));
  OCTAVO_TRY(const int64_t limit, integer_or(call, 2, -1));
  return replace_text(call.context, self_text(call), *from, *to, limit);
}

Result<Value> do_join(const Call& call) {
  OCTAVO_TRY(const SequencePtr items, elements(call.context, *call.arguments[0]));
  Text joined;
  for (size_t i = 0; i < items->items.size(); ++i) {
    const Text* item = as_text(items->items[i]);
    if (!item) return call.context.error("join() of an item that is not a str");
    OCTAVO_CHECK_OK(call.context.append(joined, i > 0 ? self_text(call) : Text()));
    OCTAVO_CHECK_OK(call.context.append(joined, *item));
  }
  return call.context.text(std::move(joined));
}

Result<Value> find_method_of(const Call& call, bool last, bool must_exist) {
  OCTAVO_TRY(const Text* part, text_argument(call, 0));
  const std::string_view text = self_text(call).bytes();
  OCTAVO_CHECK_OK(call.context.handle_bytes(text.size()));
  if (last)
    OCTAVO_CHECK_OK(
        call.context.spend(text.size() * std::min<size_t>(part->size(), kMaxSteps) / 64));
  const size_t at = last ? text.rfind(part->bytes()) : find_part(text, part->bytes(), 0);
  if (at != std::string_view::npos) return static_cast<int64_t>(count_chars(text.substr(0, at)));
  if (must_exist) return call.context.error("the substring is not there");
  return int64_t{-1};
}
Result<Value> do_find(const Call& call) { return find_method_of(call, false, false); }
Result<Value> do_rfind(const Call& call) { return find_method_of(call, true, false); }
Result<Value> do_index(const Call& call) { return find_method_of(call, false, true); }

Result<Value> do_count(const Call& call) {
  OCTAVO_TRY(const Text* part, text_argument(call, 0));
  const std::string_view text = self_text(call).bytes();
  OCTAVO_CHECK_OK(call.context.handle_bytes(text.size()));
  if (part->empty()) return static_cast<int64_t>(count_chars(text) + 1);
  return static_cast<int64_t>(count_occurrences(text, part->bytes()));
}

Result<Value> do_removeprefix(const Call& call) {
  OCTAVO_TRY(const Text* affix, text_argument(call, 0));
  const Text& text = self_text(call);
  if (!text.bytes().starts_with(affix->bytes())) return call.self;
  return call.context.text(text.slice(affix->size(), text.size()));
}
Result<Value> do_removesuffix(const Call& call) {
  OCTAVO_TRY(const Text* affix, text_argument(call, 0));
  const Text& text = self_text(call);
  if (affix->empty() || !text.bytes().ends_with(affix->bytes())) return call.self;
  return call.context.text(text.slice(0, text.size() - affix->size()));
}

template <bool (*holds)(char32_t)>
Result<Value> all_chars(const Call& call) {
  const std::string_view text = self_text(call).bytes();
  OCTAVO_CHECK_OK(call.context.handle_bytes(text.size()));
  for (size_t at = 0; at < text.size(); at += char_bytes(text[at]))
    if (!holds(decode_char(text, at))) return false;
  return !text.empty();
}
bool is_alnum(char32_t c) { return is_alpha(c) || is_digit(c); }

// True if there are cased characters and all of them have the one case.
template <bool (*wanted)(char32_t), bool (*other)(char32_t)>
Result<Value> all_cased(const Call& call) {
  const std::string_view text = self_text(call).bytes();
  OCTAVO_CHECK_OK(call.context.handle_bytes(text.size()));
  bool found = false;
  for (size_t at = 0; at < text.size(); at += char_bytes(text[at])) {
    if (other(decode_char(text, at))) return false;
    found |= wanted(decode_char(text, at));
  }
  return found;
}

Result<Value> do_get(const Call& call) {
  const Value& key = *call.arguments[0];
  if (!hash_key(key))
    return call.context.error(fmt::format("a {} cannot be a key", type_name(key)));
  if (const Value* item = self_dict(call).find(key)) return *item;
  return call.arguments[1] ? *call.arguments[1] : Value(None{});
}

Result<Value> dict_view(const Call& call, bool keys, bool values) {
  std::vector<Value> items;
  for (const auto& [key, value] : self_dict(call).entries) {
    if (keys && values) {
      OCTAVO_TRY(Value pair, call.context.sequence(Sequence::Kind::tuple, {key, value}));
      items.push_back(std::move(pair));
    } else {
      items.push_back(keys ? key : value);
    }
  }
  return call.context.sequence(Sequence::Kind::view, std::move(items));
}
Result<Value> do_keys(const Call& call) { return dict_view(call, true, false); }
Result<Value> do_values(const Call& call) { return dict_view(call, false, true); }
Result<Value> do_items(const Call& call) { return dict_view(call, true, true); }

Result<Value> do_cycle(const Call& call) {
  const auto& choices = call.arguments.all().positional;
  if (choices.empty()) return call.context.error("loop.cycle() needs something to choose from");
  return choices[std::get<LoopPtr>(call.self)->index % choices.size()];
}

constexpr Function kTextMethods[] = {
    {"split", "sep maxsplit", 0, do_split},
    {"rsplit", "sep maxsplit", 0, do_rsplit},
    {"splitlines", "keepends", 0, do_splitlines},
    {"strip", "chars", 0, do_strip},
    {"lstrip", "chars", 0, do_lstrip},
    {"rstrip", "chars", 0, do_rstrip},
    {"startswith", "prefix", 1, do_startswith},
    {"endswith", "suffix", 1, do_endswith},
    {"upper", "", 0, do_upper},
    {"lower", "", 0, do_lower},
    {"title", "", 0, do_title},
    {"capitalize", "", 0, do_capitalize},
    {"replace", "old new count", 2, do_replace},
    {"join", "iterable", 1, do_join},
    {"find", "sub", 1, do_find},
    {"rfind", "sub", 1, do_rfind},
    {"index", "sub", 1, do_index},
    {"count", "sub", 1, do_count},
    {"removeprefix", "prefix", 1, do_removeprefix},
    {"removesuffix", "suffix", 1, do_removesuffix},
    {"isdigit", "", 0, all_chars<is_digit>},
    {"isalpha", "", 0, all_chars<is_alpha>},
    {"isalnum", "", 0, all_chars<is_alnum>},
    {"isspace", "", 0, all_chars<is_space>},
    {"isupper", "", 0, all_cased<is_upper, is_lower>},
    {"islower", "", 0, all_cased<is_lower, is_upper>},
    {"casefold", "*", 0},
    {"center", "*", 0},
    {"encode", "*", 0},
    {"expandtabs", "*", 0},
    {"format", "*", 0},
    {"format_map", "*", 0},
    {"isascii", "*", 0},
    {"isdecimal", "*", 0},
    {"isidentifier", "*", 0},
    {"isnumeric", "*", 0},
    {"isprintable", "*", 0},
    {"istitle", "*", 0},
    {"ljust", "*", 0},
    {"maketrans", "*", 0},
    {"partition", "*", 0},
    {"rindex", "*", 0},
    {"rjust", "*", 0},
    {"rpartition", "*", 0},
    {"swapcase", "*", 0},
    {"translate", "*", 0},
    {"zfill", "*", 0},
};

constexpr Function kDictMethods[] = {
    {"get", "key default", 1, do_get},
    {"keys", "", 0, do_keys},
    {"values", "", 0, do_values},
    {"items", "", 0, do_items},
    {"copy", "*", 0},
    {"fromkeys", "*", 0},
    {"clear", "*", 0, nullptr, true},
    {"pop", "*", 0, nullptr, true},
    {"popitem", "*", 0, nullptr, true},
    {"setdefault", "*", 0, nullptr, true},
    {"update", "*", 0, nullptr, true},
};

constexpr Function kListMethods[] = {
    {"copy", "*", 0},
    {"count", "*", 0},
    {"index", "*", 0},
    {"append", "*", 0, nullptr, true},
    {"clear", "*", 0, nullptr, true},
    {"extend", "*", 0, nullptr, true},
    {"insert", "*", 0, nullptr, true},
    {"pop", "*", 0, nullptr, true},
    {"remove", "*", 0, nullptr, true},
    {"reverse", "*", 0, nullptr, true},
    {"sort", "*", 0, nullptr, true},
};

constexpr Function kTupleMethods[] = {{"count", "*", 0}, {"index", "*", 0}};
constexpr Function kLoopMethods[] = {{"cycle", "*", 0, do_cycle}, {"changed", "*", 0}};

std::span<const Function> methods_of(const Value& object) {
  if (as_text(object)) return kTextMethods;
  if (as_dict(object)) return kDictMethods;
  if (is<LoopPtr>(object)) return kLoopMethods;
  const Sequence* sequence = as_sequence(object);
  if (sequence && sequence->kind == Sequence::Kind::list) return kListMethods;
  if (sequence && sequence->kind == Sequence::Kind::tuple) return kTupleMethods;
  return {};
}

}  // namespace

const Function* find_method(const Value& object, std::string_view name) {
  return find_function(methods_of(object), name);
}

}  // namespace octavo::jinja
