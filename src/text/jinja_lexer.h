// A template's source as tokens, with the white space rules of trim_blocks and lstrip_blocks
// already applied.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace octavo::jinja {

struct Token {
  enum class Kind {
    data,  // text to print
    print_begin,
    print_end,
    block_begin,
    block_end,
    name,
    string,
    integer,
    number,
    symbol,  // operator or bracket, spelled in text
    end,
  };
  Kind kind;
  int line;
  std::string text;
  int64_t integer = 0;
  double number = 0;
};

// Ends with a token of kind end. name: of the template, for messages. REQUIRES: source is valid
// UTF-8.
Result<std::vector<Token>> tokenize(std::string_view source, std::string_view name);

}  // namespace octavo::jinja
