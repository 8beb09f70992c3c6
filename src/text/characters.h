// What tokenizers ask of characters, by Unicode's tables.
#pragma once

#include <string>
#include <string_view>

#include "text/utf8.h"

namespace octavo {

// REQUIRES for these two: valid UTF-8, and `at` is the start of a character, or the end.
char32_t utf8_char(std::string_view text, size_t at);         // at < text.size()
size_t previous_utf8_char(std::string_view text, size_t at);  // at > 0

bool is_white_space(char32_t c);  // the property White_Space
bool is_numeric(char32_t c);      // Nd, Nl, No
bool is_punctuation(char32_t c);  // P, and what ASCII has
bool is_other(char32_t c);        // Cc, Cf, Co
bool is_mark(char32_t c);         // M
bool is_nonspacing(char32_t c);   // Mn
bool is_han(char32_t c);          // the blocks of ideographs that BERT sets apart
bool is_word(char32_t c);         // \w of a regular expression

void append_lowercase(std::string& out, char32_t c);

// Calls visit(character, its bytes) for each.
template <class Visit>
void for_each_char(std::string_view text, Visit visit) {
  for (size_t at = 0; at < text.size();) {
    const size_t size = utf8_char_size(text, at);
    visit(utf8_char(text, at), text.substr(at, size));
    at += size;
  }
}

}  // namespace octavo
