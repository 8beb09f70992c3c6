// Finds a tokenizer.json's added tokens in text, with the white space that they take.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/token_pipeline_spec.h"
#include "text/token_matcher.h"

namespace octavo {

class AddedTokens {
 public:
  struct Entry {
    std::string spelling;  // as it stands in the text that is searched
    AddedToken token;
  };
  // Errors: those of TokenMatcher::create.
  static Result<AddedTokens> create(std::vector<Entry> entries);

  struct Region {
    size_t begin, end;
  };
  // A token, or ordinary text. Together they are the whole text.
  struct Piece {
    size_t begin, end;
    TokenId id;  // -1: ordinary text
  };
  // Special tokens are found only where they lie wholly inside a region (ascending, disjoint); the
  // others everywhere. The leftmost counts, and of those the longest.
  std::vector<Piece> split(std::string_view text, std::span<const Region> regions) const;

 private:
  class Search;
  const AddedToken& token(TokenId id) const;

  TokenMatcher special_, ordinary_;
  std::vector<AddedToken> tokens_;  // ascending by id
};

}  // namespace octavo
