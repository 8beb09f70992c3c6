// BPE as a tokenizer.json has it: characters that are tokens, joined by a ranked list of pairs.
#pragma once

#include <string>

#include "text/byte_bpe.h"
#include "text/piece_model.h"

namespace octavo {

class RankBpe final : public PieceModel {
 public:
  // Errors: corrupt_file (merges).
  static Result<std::unique_ptr<const PieceModel>> create(const PieceModelSpec& spec,
                                                          const Vocabulary& vocabulary);

  void encode(std::string_view word, std::vector<TokenId>& out, EncodeStats& stats) const override;

 private:
  class Word;
  RankBpe(const PieceModelSpec& spec, const Vocabulary& vocabulary, MergeTable merges);
  std::optional<TokenId> find(std::string_view character, bool first, bool last) const;

  const Vocabulary& vocabulary_;
  MergeTable merges_;
  std::string prefix_, suffix_;  // of inner, of last characters
  std::optional<TokenId> unknown_;
  bool byte_fallback_, fuse_unknown_, whole_words_;
  ByteTokens bytes_;
};

}  // namespace octavo
