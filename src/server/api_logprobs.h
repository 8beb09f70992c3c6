// Log-probabilities in the shapes of OpenAI's two endpoints and vLLM's prompt_logprobs.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/outputs.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"

namespace octavo {

// Bytes that are no characters on their own as OpenAI has them: "bytes:\xe2\x80".
std::string shown_token(const Tokenizer& tokenizer, TokenId id);

// How logprobs name tokens: as shown_token() does, or token_id:N.
struct TokenNames {
  const Tokenizer& tokenizer;
  bool are_ids = false;

  std::string operator()(TokenId id) const;
};

size_t count_characters(std::string_view utf8);

// Chat: [{token, logprob, bytes, top_logprobs}], the latter with `top` entries.
nlohmann::ordered_json chat_logprobs_json(std::span<const TokenLogprobs> places, int top,
                                          const TokenNames& names);

// vLLM: one object per prompt token, {"id": {logprob, rank, decoded_token}}; the first is null.
nlohmann::ordered_json prompt_logprobs_json(std::span<const std::optional<TokenLogprobs>> places,
                                            const Tokenizer& tokenizer);

// Completions: {tokens, token_logprobs, top_logprobs, text_offset} of one choice, part by part.
// Offsets count characters of the choice's text; a token that begins inside a character has this
// character's. In top_logprobs, of tokens that look alike the most probable one is kept.
class CompletionLogprobs {
 public:
  // The tokenizer must outlive this.
  CompletionLogprobs(const TokenNames& names, bool skip_special)
      : names_(names), detokenizer_(names.tokenizer, skip_special) {
    clear();
  }

  // First, if the choice begins with its prompt, which is `text`.
  void add_prompt(const RequestOutput& prompt, std::string_view text);
  void add(std::span<const TokenLogprobs> places);
  nlohmann::ordered_json take();  // what was added since the last time

 private:
  void add_one(TokenId id, const TokenLogprobs* place, size_t offset);
  void clear();

  TokenNames names_;
  Detokenizer detokenizer_;  // of the answer
  size_t num_characters_ = 0;
  nlohmann::ordered_json tokens_, token_logprobs_, top_logprobs_, offsets_;
};

}  // namespace octavo
