// UTF-8 as defined by the Unicode Standard, section 3.9: shortest form, no surrogates, at most
// U+10FFFF.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace octavo {

// Offset of the first byte that starts no well-formed character; nothing if all of `text` is well
// formed.
std::optional<size_t> find_invalid_utf8(std::string_view text);

// Bytes of the well-formed character at `at`. REQUIRES: text is valid and at is the start of a
// character.
size_t utf8_char_size(std::string_view text, size_t at);

void append_utf8(std::string& out, char32_t character);

// Turns a stream of arbitrary bytes into valid UTF-8. Bytes that are no character become U+FFFD,
// one per maximal subpart (Unicode 3.9, table 3-8). Only an unfinished character, at most 3 bytes,
// is held back.
class Utf8Repair {
 public:
  void push(std::string_view bytes, std::string& out);
  void finish(std::string& out);  // an unfinished character becomes one U+FFFD

 private:
  std::string pending_;
};

}  // namespace octavo
