#include "text/jinja_strings.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "text/jinja_limits.h"

namespace octavo::jinja {
namespace {

constexpr auto kMostCuts = static_cast<int64_t>(kMaxItems);

bool in_set(std::string_view one_char, std::optional<std::string_view> chars) {
  return chars ? chars->find(one_char) != std::string_view::npos
               : is_space(decode_char(one_char, 0));
}

std::string_view char_at(std::string_view text, size_t at) {
  return text.substr(at, char_bytes(text[at]));
}

std::vector<Text> split_spaces(const Text& text, int64_t limit) {
  const std::string_view bytes = text.bytes();
  std::vector<Text> words;
  size_t at = 0;
  while (true) {
    while (at < bytes.size() && is_space(decode_char(bytes, at))) at += char_bytes(bytes[at]);
    if (at == bytes.size()) return words;
    if (limit >= 0 && words.size() == static_cast<size_t>(limit)) break;
    const size_t begin = at;
    while (at < bytes.size() && !is_space(decode_char(bytes, at))) at += char_bytes(bytes[at]);
    words.push_back(text.slice(begin, at));
  }
  words.push_back(text.slice(at, bytes.size()));
  return words;
}

std::vector<Text> rsplit_spaces(const Text& text, int64_t limit) {
  const std::string_view bytes = text.bytes();
  std::vector<Text> words;
  size_t end = bytes.size();
  const auto space_before = [&](size_t at) {
    return is_space(decode_char(bytes, previous_char(bytes, at)));
  };
  while (true) {
    while (end > 0 && space_before(end)) end = previous_char(bytes, end);
    if (end == 0) break;
    if (limit >= 0 && words.size() == static_cast<size_t>(limit)) {
      words.push_back(text.slice(0, end));
      break;
    }
    size_t begin = end;
    while (begin > 0 && !space_before(begin)) begin = previous_char(bytes, begin);
    words.push_back(text.slice(begin, end));
    end = begin;
  }
  std::reverse(words.begin(), words.end());
  return words;
}

std::vector<Text> split_at(const Text& text, std::string_view separator, int64_t limit) {
  std::vector<Text> parts;
  size_t begin = 0;
  for (size_t at;
       limit != 0 && (at = find_part(text.bytes(), separator, begin)) != std::string_view::npos;
       --limit) {
    parts.push_back(text.slice(begin, at));
    begin = at + separator.size();
  }
  parts.push_back(text.slice(begin, text.size()));
  return parts;
}

std::vector<Text> rsplit_at(const Text& text, std::string_view separator, int64_t limit) {
  std::vector<Text> parts;
  size_t end = text.size();
  for (; limit != 0 && end >= separator.size(); --limit) {
    const size_t at = text.bytes().substr(0, end).rfind(separator);
    if (at == std::string_view::npos) break;
    parts.push_back(text.slice(at + separator.size(), end));
    end = at;
  }
  parts.push_back(text.slice(0, end));
  std::reverse(parts.begin(), parts.end());
  return parts;
}

// Builds a text in which every character is mapped by itself and keeps its mark.
template <class CaseOf>
Text map_case(const Text& text, CaseOf case_of) {
  Text result;
  const std::string_view bytes = text.bytes();
  std::string mapped;
  for (size_t at = 0; at < bytes.size(); at += char_bytes(bytes[at])) {
    mapped.clear();
    append_cased(mapped, decode_char(bytes, at), case_of(at));
    result.append(mapped, text.is_template_at(at));
  }
  result.set_markup(text.is_markup());
  return result;
}

bool cased(char32_t c) { return is_upper(c) || is_lower(c); }

// A capital sigma at the end of a word has its own small form.
bool is_final_sigma(std::string_view bytes, size_t at) {
  if (decode_char(bytes, at) != 0x3A3 || at == 0) return false;
  const size_t next = at + 2;
  return cased(decode_char(bytes, previous_char(bytes, at))) &&
         (next >= bytes.size() || !cased(decode_char(bytes, next)));
}

Text lower(const Text& text) {
  Text result;
  const std::string_view bytes = text.bytes();
  std::string mapped;
  for (size_t at = 0; at < bytes.size(); at += char_bytes(bytes[at])) {
    mapped.clear();
    if (is_final_sigma(bytes, at))
      mapped = "\u03C2";
    else
      append_cased(mapped, decode_char(bytes, at), Case::lower);
    result.append(mapped, text.is_template_at(at));
  }
  result.set_markup(text.is_markup());
  return result;
}

// Line boundaries of str.splitlines.
bool is_line_break(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

size_t end_of_break(std::string_view bytes, size_t at) {
  if (bytes.substr(at, 2) == "\r\n") return at + 2;
  return at + char_bytes(bytes[at]);
}

}  // namespace

size_t find_part(std::string_view text, std::string_view part, size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (part.empty()) return from;
  const void* found = memmem(text.data() + from, text.size() - from, part.data(), part.size());
  return found ? static_cast<size_t>(static_cast<const char*>(found) - text.data())
               : std::string_view::npos;
}

Text strip(const Text& text, Side side, std::optional<std::string_view> chars) {
  const std::string_view bytes = text.bytes();
  size_t begin = 0;
  size_t end = bytes.size();
  if (side != Side::right)
    while (begin < end && in_set(char_at(bytes, begin), chars)) begin += char_bytes(bytes[begin]);
  if (side != Side::left)
    while (end > begin && in_set(char_at(bytes, previous_char(bytes, end)), chars))
      end = previous_char(bytes, end);
  return text.slice(begin, end);
}

std::vector<Text> split(const Text& text, std::optional<std::string_view> separator, int64_t limit,
                        bool from_right) {
  if (limit < 0 || limit > kMostCuts) limit = kMostCuts;
  if (!separator) return from_right ? rsplit_spaces(text, limit) : split_spaces(text, limit);
  return from_right ? rsplit_at(text, *separator, limit) : split_at(text, *separator, limit);
}

std::vector<Text> split_lines(const Text& text, bool keep_ends) {
  const std::string_view bytes = text.bytes();
  std::vector<Text> lines;
  size_t begin = 0;
  for (size_t at = 0; at < bytes.size() && lines.size() <= kMaxItems;) {
    if (!is_line_break(decode_char(bytes, at))) {
      at += char_bytes(bytes[at]);
      continue;
    }
    const size_t end = end_of_break(bytes, at);
    lines.push_back(text.slice(begin, keep_ends ? end : at));
    begin = at = end;
  }
  if (begin < bytes.size()) lines.push_back(text.slice(begin, bytes.size()));
  return lines;
}

size_t count_occurrences(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = 0; (at = find_part(text, part, at)) != std::string_view::npos; at += part.size())
    ++count;
  return count;
}

size_t count_replacements(const Text& text, std::string_view from, int64_t limit) {
  const size_t count =
      from.empty() ? count_chars(text.bytes()) + 1 : count_occurrences(text.bytes(), from);
  return limit < 0 ? count : std::min(count, static_cast<size_t>(limit));
}

Text replace(const Text& text, std::string_view from, const Text& to, int64_t limit) {
  const std::string_view bytes = text.bytes();
  Text result;
  size_t done = 0;  // bytes copied so far
  size_t at = 0;
  for (; limit != 0; --limit) {
    const size_t found = from.empty() ? at : find_part(bytes, from, at);
    if (found == std::string_view::npos) break;
    result.append(text, done, found);
    result.append(to);
    done = found + from.size();
    if (from.empty() && found == bytes.size()) break;
    at = from.empty() ? found + char_bytes(bytes[found]) : done;
  }
  result.append(text, done, text.size());
  return result;
}

Text change_case(const Text& text, Case wanted) {
  if (wanted == Case::lower) return lower(text);
  return map_case(text, [wanted](size_t) { return wanted; });
}

Text capitalize(const Text& text) {
  if (text.empty()) return text;
  const size_t first = char_bytes(text.bytes()[0]);
  Text result = map_case(text.slice(0, first), [](size_t) { return Case::title; });
  result.append(lower(text.slice(first, text.size())));
  return result;
}

Text title(const Text& text) {
  bool inside = false;
  return map_case(text, [&](size_t at) {
    const Case wanted = inside ? Case::lower : Case::title;
    inside = is_alpha(decode_char(text.bytes(), at));
    return wanted;
  });
}

Text title_words(const Text& text) {
  bool inside = false;
  return map_case(text, [&](size_t at) {
    const std::string_view c = char_at(text.bytes(), at);
    const bool boundary =
        is_space(decode_char(c, 0)) || std::string_view("-({[<").find(c) != std::string_view::npos;
    const Case wanted = inside ? Case::lower : Case::upper;
    inside = !boundary;
    return wanted;
  });
}

Text reverse(const Text& text) {
  Text result;
  for (size_t end = text.size(); end > 0;) {
    const size_t begin = previous_char(text.bytes(), end);
    result.append(text, begin, end);
    end = begin;
  }
  result.set_markup(text.is_markup());
  return result;
}

Text slice_chars(const Text& text, int64_t start, int64_t stop, int64_t step) {
  const std::string_view bytes = text.bytes();
  if (step > 0 ? start >= stop : start <= stop) return {};
  if (step == 1) {
    const size_t begin = byte_of_char(bytes, static_cast<size_t>(start));
    const size_t length = byte_of_char(bytes.substr(begin), static_cast<size_t>(stop - start));
    return text.slice(begin, begin + length);
  }
  std::vector<size_t> begins;
  for (size_t at = 0; at < bytes.size(); at += char_bytes(bytes[at])) begins.push_back(at);
  Text result;
  for (int64_t i = start; step > 0 ? i < stop : i > stop; i += step) {
    const size_t begin = begins[static_cast<size_t>(i)];
    result.append(text, begin, begin + char_bytes(bytes[begin]));
  }
  result.set_markup(text.is_markup());
  return result;
}

}  // namespace octavo::jinja
