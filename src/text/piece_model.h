// From one word to its tokens: what differs between BPE, Unigram and WordPiece.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/ids.h"
#include "core/token_pipeline_spec.h"
#include "text/merge.h"
#include "text/vocabulary.h"

namespace octavo {

class PieceModel {
 public:
  // `vocabulary`: finds what text may become, and must outlive the model.
  // Errors: corrupt_file, unsupported.
  static Result<std::unique_ptr<const PieceModel>> create(const PieceModelSpec& spec,
                                                          const Vocabulary& vocabulary);
  virtual ~PieceModel() = default;

  // Appends the tokens of a word. REQUIRES: valid UTF-8, not empty. Any number of threads may call
  // it at once.
  virtual void encode(std::string_view word, std::vector<TokenId>& out,
                      EncodeStats& stats) const = 0;
};

// The tokens <0x00> to <0xFF>; -1: the vocabulary has none for the byte.
class ByteTokens {
 public:
  ByteTokens() { ids_.fill(-1); }
  explicit ByteTokens(const Vocabulary& vocabulary);

  // All or nothing: false, and nothing is appended, if a byte has no token.
  bool append(std::string_view bytes, std::vector<TokenId>& out) const;

 private:
  std::array<int32_t, 256> ids_;
};

}  // namespace octavo
