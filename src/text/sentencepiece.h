// SentencePiece's BPE, GGUF's tokenizer model "llama": spaces become U+2581, neighbours are joined
// when the result is in the vocabulary, the best score first; characters without a piece become
// byte tokens.
#pragma once

#include <array>
#include <bitset>
#include <memory>
#include <optional>

#include "text/token_matcher.h"
#include "text/token_model.h"
#include "text/vocabulary.h"

namespace octavo {

class SentencePiece final : public TokenModel {
 public:
  struct Options {
    // A run of text that starts the input or follows a control token gets a space.
    bool add_space_prefix = true;
    bool prefix_at_start_only = false;  // only the first one does
    bool prefix_unless_space = false;   // not if it begins with a space
    // Stands for characters without a piece when the vocabulary has no byte tokens.
    std::optional<TokenId> unknown = {};
  };
  // The vocabulary must outlive the model. Refuses one without scores or types, one with some byte
  // tokens but not all 256, and one with neither byte tokens nor an unknown token.
  static Result<std::unique_ptr<SentencePiece>> create(const Vocabulary& vocabulary,
                                                       Options options);

  Result<void> encode(std::string_view run, std::vector<TokenId>& out,
                      EncodeStats& stats) const override;
  void append_bytes(TokenId id, std::string& out) const override;

 private:
  class Run;
  SentencePiece(const Vocabulary& vocabulary, TokenMatcher user_defined, Options options);
  Result<void> read_byte_tokens();
  void find_bytes_before_mark();

  const Vocabulary& vocabulary_;
  TokenMatcher user_defined_;
  Options options_;
  bool has_byte_tokens_ = false;
  std::array<int32_t, 256> byte_tokens_;

  // Bytes that some piece has right before a U+2581. Where a U+2581 follows any other byte no piece
  // can span the two, so the text may be cut there and merged word by word.
  std::bitset<256> before_mark_;
};

}  // namespace octavo
