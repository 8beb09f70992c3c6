// Python's str methods over Text. Positions and counts given to them are characters, as in Python;
// the marks of every byte follow it into the result.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "text/jinja_text.h"
#include "text/jinja_unicode.h"

namespace octavo::jinja {

// Like text.find(part, from), in linear time whatever the bytes.
size_t find_part(std::string_view text, std::string_view part, size_t from);

enum class Side { left, right, both };

// chars: the set of characters to strip; unset: white space.
Text strip(const Text& text, Side side, std::optional<std::string_view> chars);

// separator unset: runs of white space. limit < 0: no limit. from_right: the limit counts from the
// end (rsplit). More parts than a list may have are not all made, but one more than that. REQUIRES:
// a separator that is given is not empty.
std::vector<Text> split(const Text& text, std::optional<std::string_view> separator, int64_t limit,
                        bool from_right);
std::vector<Text> split_lines(const Text& text, bool keep_ends);

// At most `limit` replacements, all if negative. An empty `from` matches before every character and
// at the end.
Text replace(const Text& text, std::string_view from, const Text& to, int64_t limit);
// How many replacements replace() would make.
size_t count_replacements(const Text& text, std::string_view from, int64_t limit);
// How often `part` occurs without overlap. REQUIRES: part is not empty.
size_t count_occurrences(std::string_view text, std::string_view part);

Text change_case(const Text& text, Case wanted);  // upper, lower
Text capitalize(const Text& text);                // first character as a title, others lower
Text title(const Text& text);                     // str.title: after every non-letter
Text title_words(const Text& text);               // Jinja's filter: after white space and -({[<
Text reverse(const Text& text);
// Every step-th character of [start, stop); positions are inside the text, or -1 below it.
// REQUIRES: step != 0.
Text slice_chars(const Text& text, int64_t start, int64_t stop, int64_t step);

}  // namespace octavo::jinja
