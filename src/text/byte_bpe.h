// Byte-level BPE, GGUF's tokenizer model "gpt2": words from a pre-tokenizer, spelled in the byte
// alphabet, joined by a ranked list of merges.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "text/pretokenizer.h"
#include "text/token_matcher.h"
#include "text/token_model.h"
#include "text/vocabulary.h"

namespace octavo {

// (left token, right token) -> rank and joined token.
class MergeTable {
 public:
  // Merges are "left right", best first. One that names a piece outside the vocabulary is refused.
  static Result<MergeTable> create(const StringTable& merges, const Vocabulary& vocabulary);
  // `merges`: left, right, left, right, ...; the joined token is spelled as both, but for the first
  // `prefix` bytes of the right one. A pair with a piece that no text may become is left out. Of
  // equal pairs the last counts.
  static Result<MergeTable> create_from_pairs(const StringTable& merges, size_t prefix,
                                              const Vocabulary& vocabulary);
  std::optional<Merge> find(int32_t left, int32_t right) const;

 private:
  struct Slot {
    uint64_t pair = kFree;
    Merge merge{};
  };
  static constexpr uint64_t kFree = UINT64_MAX;  // of no pair: ids are never negative
  void reserve(size_t merges);
  bool insert(uint64_t pair, Merge merge, bool replaces);

  std::vector<Slot> slots_;  // open addressing; a power of two, at most half full
};

class ByteBpe final : public TokenModel {
 public:
  // The vocabulary must outlive the model.
  static Result<std::unique_ptr<ByteBpe>> create(const Vocabulary& vocabulary, PreTokenizer pre,
                                                 const StringTable& merges);

  Result<void> encode(std::string_view run, std::vector<TokenId>& out,
                      EncodeStats& stats) const override;
  void append_bytes(TokenId id, std::string& out) const override;

 private:
  struct Scratch;
  ByteBpe(const Vocabulary& vocabulary, PreTokenizer pre, MergeTable merges,
          TokenMatcher user_defined);

  Result<void> encode_words(std::string_view text, std::vector<TokenId>& out, Scratch& scratch,
                            EncodeStats& stats) const;
  void encode_word(std::string_view word, std::vector<TokenId>& out, Scratch& scratch,
                   EncodeStats& stats) const;

  const Vocabulary& vocabulary_;
  PreTokenizer pre_;
  MergeTable merges_;
  TokenMatcher user_defined_;
  std::array<int32_t, 256> byte_tokens_;  // -1: the vocabulary has no token for this byte
};

}  // namespace octavo
