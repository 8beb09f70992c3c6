// Tokenizer specs small enough to work out by hand.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/tokenizer_spec.h"
#include "text/byte_alphabet.h"

namespace octavo::testing {

inline TokenId add_token(TokenizerSpec& spec, const std::string& spelling, TokenType type,
                         float score = 0) {
  spec.tokens.push_back(spelling);
  spec.types.push_back(type);
  spec.scores.push_back(score);
  return TokenId{static_cast<int32_t>(spec.tokens.size()) - 1};
}

// Byte-level BPE: ids 0 to 255 are the bytes, then "he", "ll", "hell", "hello", " w", "12", then
// <bos> 262, <eos> 263 and the user-defined <think> 264.
inline TokenizerSpec tiny_byte_spec(const std::string& pre = "gpt2") {
  TokenizerSpec spec;
  spec.model = "gpt2";
  spec.pre = pre;
  for (int byte = 0; byte < 256; ++byte) {
    add_token(spec, spell_bytes(std::string(1, static_cast<char>(byte))), TokenType::normal);
  }
  const std::vector<std::pair<std::string, std::string>> merges = {
      {"h", "e"}, {"l", "l"}, {"he", "ll"}, {"hell", "o"}, {"Ġ", "w"}, {"1", "2"}};
  for (const auto& [left, right] : merges) {
    add_token(spec, left + right, TokenType::normal);
    spec.merges.push_back(left + " " + right);
  }
  spec.bos = add_token(spec, "<bos>", TokenType::control);
  spec.eos = add_token(spec, "<eos>", TokenType::control);
  add_token(spec, "<think>", TokenType::user_defined);
  spec.scores.clear();
  return spec;
}

// SentencePiece: <unk> 0, <bos> 1, <eos> 2, byte tokens 3 to 258 (byte + 3) if asked for, then the
// given pieces with scores -1, -2, ... in their order.
inline TokenizerSpec tiny_piece_spec(const std::vector<std::string>& pieces,
                                     bool byte_tokens = true) {
  TokenizerSpec spec;
  spec.model = "llama";
  spec.unknown = add_token(spec, "<unk>", TokenType::unknown);
  spec.bos = add_token(spec, "<bos>", TokenType::control);
  spec.eos = add_token(spec, "<eos>", TokenType::control);
  static constexpr char kHex[] = "0123456789ABCDEF";
  for (int byte = 0; byte_tokens && byte < 256; ++byte) {
    add_token(spec, std::string("<0x") + kHex[byte >> 4] + kHex[byte & 15] + ">", TokenType::byte);
  }
  float score = 0;
  for (const auto& piece : pieces) add_token(spec, piece, TokenType::normal, score -= 1);
  return spec;
}

}  // namespace octavo::testing
