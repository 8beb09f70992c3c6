// The tokenizer that a tokenizer.json describes: added tokens, then normaliser, words and pieces
// for the text between them.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/tokenizer_spec.h"
#include "text/added_tokens.h"
#include "text/piece_decoder.h"
#include "text/piece_model.h"
#include "text/text_normalizer.h"
#include "text/text_splitter.h"
#include "text/vocabulary.h"

namespace octavo {

class TokenPipeline {
 public:
  // `vocabulary`: all tokens, with their types; no text becomes one of its control tokens but by
  // being spelled out in a region. It must outlive the pipeline.
  // Errors: corrupt_file, unsupported.
  static Result<std::unique_ptr<const TokenPipeline>> create(TokenPipelineSpec spec,
                                                             const Vocabulary& vocabulary);

  // Control tokens are recognised only inside `regions` (ascending, disjoint). A control token that
  // the file wants to be found in normalised text is: if the one region is the whole text; if it is
  // only a part, it is found as it is written, for normalised text has no regions.
  // REQUIRES: valid UTF-8.
  Result<void> encode(std::string_view text, std::span<const AddedTokens::Region> regions,
                      std::vector<TokenId>& out, EncodeStats& stats) const;

  // The bytes of a token; `state` is that of the text so far. REQUIRES: the vocabulary contains it.
  std::string decode(TokenId id, PieceDecoder::State& state) const;

 private:
  explicit TokenPipeline(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {}
  Result<void> add_tokens(const std::vector<AddedToken>& added);
  Result<void> encode_raw(std::string_view text, bool at_start, bool whole,
                          std::vector<TokenId>& out, EncodeStats& stats) const;
  Result<void> encode_normal(std::string_view text, bool at_start, std::vector<TokenId>& out,
                             EncodeStats& stats) const;

  const Vocabulary& vocabulary_;
  std::unique_ptr<const Vocabulary> pieces_;  // what ordinary text may become
  TextNormalizer normalizer_;
  TextSplitter splitter_;
  std::unique_ptr<const PieceModel> model_;
  // Searched before and after the text is normalised. `written`: as raw_, with all special tokens.
  AddedTokens raw_, written_, normal_;
  std::vector<std::pair<TokenId, std::string>>
      decoded_spellings_;  // ascending; where not their own
  PieceDecoder decoder_;
};

}  // namespace octavo
