// Incremental detokenization: tokens to text one at a time, for streaming. No character is ever
// split, and what is ready is released at once.
#pragma once

#include <span>
#include <string>

#include "core/ids.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace octavo {

// The outputs of push() and finish() together equal Tokenizer::decode() of the same tokens and
// options.
class Detokenizer {
 public:
  // shown: control tokens that are not skipped. It and the tokenizer must outlive this.
  Detokenizer(const Tokenizer& tokenizer, bool skip_special, SpacePrefix prefix = SpacePrefix::keep,
              std::span<const TokenId> shown = {})
      : tokenizer_(&tokenizer),
        skip_special_(skip_special),
        strip_(prefix == SpacePrefix::strip),
        shown_(shown) {
    if (!strip_) state_ = PieceDecoder::inside();
  }

  std::string push(TokenId id);
  std::string finish();  // what is left of an unfinished character, as one U+FFFD

 private:
  void append(TokenId id, std::string& out);
  friend class Tokenizer;

  const Tokenizer* tokenizer_;
  bool skip_special_;
  bool strip_;  // still looking for the first text
  PieceDecoder::State state_;
  std::span<const TokenId> shown_;
  Utf8Repair repair_;
};

}  // namespace octavo
