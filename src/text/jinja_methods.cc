// Methods of strings: Python's names and parameters.
#include <fmt/format.h>

#include <algorithm>

#include "text/jinja_callable.h"
#include "text/jinja_format.h"
#include "text/jinja_operators.h"
#include "text/jinja_strings.h"

namespace octavo::jinja {
namespace {

const Text& self_text(const Call& call) { return *as_text(call.self); }

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
  OCTAVO_CHECK_OK(call.context.handle_bytes(self_text(call).size()));
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
    OCTAVO_CHECK_OK(call.context.handle_bytes(affix->size()));
    return has_affix(self_text(call).bytes(), affix->bytes(), front);
  }
  for (const Value& item : tuple->items) {
    const Text* affix = as_text(item);
    if (!affix) return call.context.error("a tuple with an item that is not a str");
    OCTAVO_CHECK_OK(call.context.handle_bytes(affix->size()));
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

// The part of the text that the bounds of find() and its kin choose: positions in characters, from
// the end if negative. Unset: the start lies behind the end of the text.
struct Window {
  size_t begin, end;  // bytes
  int64_t start;      // the character at begin
};

Result<std::optional<Window>> window(const Call& call, size_t first_bound) {
  const std::string_view text = self_text(call).bytes();
  OCTAVO_CHECK_OK(call.context.handle_bytes(text.size()));
  const auto size = static_cast<int64_t>(count_chars(text));
  OCTAVO_TRY(int64_t start, integer_or(call, first_bound, 0));
  OCTAVO_TRY(int64_t stop, integer_or(call, first_bound + 1, size));
  if (start < 0) start = std::max<int64_t>(start + size, 0);
  if (stop < 0) stop = std::max<int64_t>(stop + size, 0);
  stop = std::min(stop, size);
  if (start > stop) return std::nullopt;
  return Window{byte_of_char(text, static_cast<size_t>(start)),
                byte_of_char(text, static_cast<size_t>(stop)), start};
}

Result<Value> find_method_of(const Call& call, bool last, bool must_exist) {
  OCTAVO_TRY(const Text* part, text_argument(call, 0));
  OCTAVO_TRY(const auto place, window(call, 1));
  size_t at = std::string_view::npos;
  std::string_view text;
  if (place) {
    text = self_text(call).bytes().substr(place->begin, place->end - place->begin);
    if (last)
      OCTAVO_CHECK_OK(
          call.context.spend(text.size() * std::min<size_t>(part->size(), kMaxSteps) / 64));
    at = last ? text.rfind(part->bytes()) : find_part(text, part->bytes(), 0);
  }
  if (at != std::string_view::npos)
    return place->start + static_cast<int64_t>(count_chars(text.substr(0, at)));
  if (must_exist) return call.context.error("the substring is not there");
  return int64_t{-1};
}
Result<Value> do_find(const Call& call) { return find_method_of(call, false, false); }
Result<Value> do_rfind(const Call& call) { return find_method_of(call, true, false); }
Result<Value> do_index(const Call& call) { return find_method_of(call, false, true); }
Result<Value> do_rindex(const Call& call) { return find_method_of(call, true, true); }

Result<Value> do_count(const Call& call) {
  OCTAVO_TRY(const Text* part, text_argument(call, 0));
  OCTAVO_TRY(const auto place, window(call, 1));
  if (!place) return int64_t{0};
  const std::string_view text =
      self_text(call).bytes().substr(place->begin, place->end - place->begin);
  if (part->empty()) return static_cast<int64_t>(count_chars(text) + 1);
  const size_t count = count_occurrences(text, part->bytes());
  OCTAVO_CHECK_OK(call.context.handle_matches(count));
  return static_cast<int64_t>(count);
}

// The text before the separator, the separator, and the text after it.
Result<Value> partition(const Call& call, bool last) {
  OCTAVO_TRY(const Text* separator, text_argument(call, 0));
  if (separator->empty()) return call.context.error("an empty separator");
  const Text& text = self_text(call);
  OCTAVO_CHECK_OK(call.context.handle_bytes(text.size()));
  if (last)
    OCTAVO_CHECK_OK(
        call.context.spend(text.size() * std::min<size_t>(separator->size(), kMaxSteps) / 64));
  const size_t at = last ? text.bytes().rfind(separator->bytes())
                         : find_part(text.bytes(), separator->bytes(), 0);
  const bool found = at != std::string_view::npos;
  const size_t end = found ? at + separator->size() : 0;
  std::vector<Text> parts = {text.slice(0, found ? at : 0), text.slice(found ? at : 0, end),
                             text.slice(end, text.size())};
  if (!found && !last) std::swap(parts[0], parts[2]);
  std::vector<Value> items;
  for (Text& part : parts) {
    OCTAVO_TRY(Value item, call.context.text(std::move(part)));
    items.push_back(std::move(item));
  }
  return call.context.sequence(Sequence::Kind::tuple, std::move(items));
}
Result<Value> do_partition(const Call& call) { return partition(call, false); }
Result<Value> do_rpartition(const Call& call) { return partition(call, true); }

Result<Value> do_format(const Call& call) {
  return brace_format(call.context, self_text(call), call.arguments.all());
}

Result<Value> do_format_map(const Call& call) {
  const Dict* dict = as_dict(*call.arguments[0]);
  if (!dict) return call.context.error("format_map() needs a dict");
  Arguments arguments;
  OCTAVO_CHECK_OK(call.context.spend(dict->entries.size()));
  for (const auto& [key, value] : dict->entries)
    if (const Text* name = as_text(key)) arguments.named.emplace_back(name->bytes(), value);
  return brace_format(call.context, self_text(call), arguments);
}

// center, ljust and rjust ('c': as str.center rounds); the fill is the template's unless the
// conversation gave it.
Result<Value> justified(const Call& call, char align) {
  OCTAVO_TRY(const int64_t width, integer_or(call, 0, 0));
  FieldStyle style;
  style.width = static_cast<size_t>(std::max<int64_t>(width, 0));
  style.align = align;
  if (call.arguments.given(1)) {
    OCTAVO_TRY(const Text* fill, text_argument(call, 1));
    if (count_chars(fill->bytes()) != 1)
      return call.context.error("the fill must be one character");
    style.fill = fill->bytes();
    style.is_template = !fill->has_content();
  }
  OCTAVO_TRY(Text text, styled(call.context, call.self, style));
  return call.context.text(std::move(text));
}
Result<Value> do_center(const Call& call) { return justified(call, 'c'); }
Result<Value> do_ljust(const Call& call) { return justified(call, '<'); }
Result<Value> do_rjust(const Call& call) { return justified(call, '>'); }

Result<Value> do_zfill(const Call& call) {
  OCTAVO_TRY(const int64_t width, integer_or(call, 0, 0));
  const Text& text = self_text(call);
  const bool is_signed = text.bytes().starts_with('+') || text.bytes().starts_with('-');
  FieldStyle style{.fill = "0", .align = '>'};
  style.width = static_cast<size_t>(std::max<int64_t>(width - (is_signed ? 1 : 0), 0));
  OCTAVO_TRY(const Value digits, call.context.text(text.slice(is_signed ? 1 : 0, text.size())));
  OCTAVO_TRY(const Text filled, styled(call.context, digits, style));
  Text result = text.slice(0, is_signed ? 1 : 0);
  result.append(filled);
  return call.context.text(std::move(result));
}

Result<Value> do_isascii(const Call& call) {
  const std::string_view text = self_text(call).bytes();
  OCTAVO_CHECK_OK(call.context.handle_bytes(text.size()));
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

Result<Value> do_removeprefix(const Call& call) {
  OCTAVO_TRY(const Text* affix, text_argument(call, 0));
  const Text& text = self_text(call);
  OCTAVO_CHECK_OK(call.context.handle_bytes(affix->size()));
  if (!text.bytes().starts_with(affix->bytes())) return call.self;
  return call.context.text(text.slice(affix->size(), text.size()));
}
Result<Value> do_removesuffix(const Call& call) {
  OCTAVO_TRY(const Text* affix, text_argument(call, 0));
  const Text& text = self_text(call);
  OCTAVO_CHECK_OK(call.context.handle_bytes(affix->size()));
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
Result<Value> do_isprintable(const Call& call) {
  if (self_text(call).empty()) return true;
  return all_chars<is_printable>(call);
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
    {"find", "sub start end", 1, do_find},
    {"rfind", "sub start end", 1, do_rfind},
    {"index", "sub start end", 1, do_index},
    {"count", "sub start end", 1, do_count},
    {"removeprefix", "prefix", 1, do_removeprefix},
    {"removesuffix", "suffix", 1, do_removesuffix},
    {"isdigit", "", 0, all_chars<is_digit>},
    {"isalpha", "", 0, all_chars<is_alpha>},
    {"isalnum", "", 0, all_chars<is_alnum>},
    {"isspace", "", 0, all_chars<is_space>},
    {"isprintable", "", 0, do_isprintable},
    {"isupper", "", 0, all_cased<is_upper, is_lower>},
    {"islower", "", 0, all_cased<is_lower, is_upper>},
    {"casefold", "*", 0},
    {"center", "width fillchar", 1, do_center},
    {"encode", "*", 0},
    {"expandtabs", "*", 0},
    {"format", "*", 0, do_format},
    {"format_map", "mapping", 1, do_format_map},
    {"isascii", "", 0, do_isascii},
    {"isdecimal", "*", 0},
    {"isidentifier", "*", 0},
    {"isnumeric", "*", 0},
    {"istitle", "*", 0},
    {"ljust", "width fillchar", 1, do_ljust},
    {"maketrans", "*", 0},
    {"partition", "sep", 1, do_partition},
    {"rindex", "sub start end", 1, do_rindex},
    {"rjust", "width fillchar", 1, do_rjust},
    {"rpartition", "sep", 1, do_rpartition},
    {"swapcase", "*", 0},
    {"translate", "*", 0},
    {"zfill", "width", 1, do_zfill},
};

}  // namespace

std::span<const Function> text_methods() { return kTextMethods; }

}  // namespace octavo::jinja
