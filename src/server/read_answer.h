// One choice of a chat on its way to the client: its parts, and how many of its tokens are
// reasoning.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/ids.h"
#include "text/answer_parser.h"
#include "text/detokenizer.h"

namespace octavo {

class ReadAnswer {
 public:
  // detokenizer: as the one that made the text.
  ReadAnswer(const AnswerFormat& format, Detokenizer detokenizer)
      : parser_(format), detokenizer_(std::move(detokenizer)), counts_(format.reasoning) {}

  // What the answer gained; nothing comes after the end.
  AnswerParts read(std::string_view text, std::span<const TokenId> ids, bool is_end);

  size_t num_calls() const { return num_calls_; }
  // Of the tokens so far; never more than there are.
  int64_t reasoning_tokens() const;

 private:
  AnswerParser parser_;
  Detokenizer detokenizer_;
  bool counts_;
  size_t num_calls_ = 0, num_bytes_ = 0;
  std::vector<size_t> begins_;  // of each token, in the text
};

// "call_" and 24 hexadecimal digits, or nine letters and digits; the same for the same call.
std::string call_id(uint64_t seed, int choice, size_t call, bool is_short);

}  // namespace octavo
