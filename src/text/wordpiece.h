// WordPiece: from the left, always the longest piece of the vocabulary.
#pragma once

#include <string>

#include "text/piece_model.h"

namespace octavo {

class WordPiece final : public PieceModel {
 public:
  // REQUIRES: the spec has an unknown token.
  WordPiece(const PieceModelSpec& spec, const Vocabulary& vocabulary);

  void encode(std::string_view word, std::vector<TokenId>& out, EncodeStats& stats) const override;

 private:
  const Vocabulary& vocabulary_;
  std::string prefix_;  // of pieces inside a word
  size_t longest_word_;
  TokenId unknown_;
};

}  // namespace octavo
