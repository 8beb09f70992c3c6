// Characters as Python's str sees them, over UTF-8 bytes. REQUIRES everywhere but in
// find_invalid_utf8: valid UTF-8.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace octavo::jinja {

// Where the first byte is that is not UTF-8 (a surrogate or an overlong form is not), if any.
std::optional<size_t> find_invalid_utf8(std::string_view text);

size_t char_bytes(char lead);  // 1..4, from a character's first byte
size_t count_chars(std::string_view text);
char32_t decode_char(std::string_view text, size_t at);
void append_char(std::string& out, char32_t c);
// The byte at which character `index` begins; text.size() if there are fewer.
size_t byte_of_char(std::string_view text, size_t index);
size_t previous_char(std::string_view text, size_t at);  // REQUIRES: at > 0

bool is_space(char32_t c);      // str.isspace
bool is_printable(char32_t c);  // what repr() leaves as it is
bool is_alpha(char32_t c);
bool is_digit(char32_t c);
bool is_upper(char32_t c);
bool is_lower(char32_t c);

enum class Case { upper, lower, title };
// One character may become up to three (U+00DF becomes SS).
void append_cased(std::string& out, char32_t c, Case wanted);

}  // namespace octavo::jinja
