// The pieces of a vocabulary with their types and scores, checked, and an index from spelling to
// id.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/ids.h"
#include "core/string_table.h"
#include "core/tokenizer_spec.h"

namespace octavo {

class Vocabulary {
 public:
  // Refuses an empty or too large vocabulary, types or scores that are not one per token, unknown
  // types and scores that are not numbers. Of two tokens with one spelling the index keeps the
  // first.
  static Result<Vocabulary> create(StringTable spellings, std::vector<TokenType> types,
                                   std::vector<float> scores);

  size_t size() const { return spellings_.size(); }
  bool contains(TokenId id) const { return raw(id) >= 0 && static_cast<size_t>(raw(id)) < size(); }

  // REQUIRES for these four: contains(id).
  std::string_view spelling(TokenId id) const { return spellings_[raw(id)]; }
  TokenType type(TokenId id) const { return types_.empty() ? TokenType::normal : types_[raw(id)]; }
  float score(TokenId id) const { return scores_.empty() ? 0.0f : scores_[raw(id)]; }
  bool is_control(TokenId id) const;

  // The token of ordinary text with this spelling. Control, unknown and byte tokens are never
  // found: no text becomes one of them by merging.
  std::optional<TokenId> find(std::string_view spelling) const;

  bool has_scores() const { return !scores_.empty(); }
  bool has_types() const { return !types_.empty(); }
  size_t longest_spelling() const {
    return longest_spelling_;
  }  // bytes, among those that find() knows

 private:
  struct Slot {
    uint32_t tag;  // upper half of the hash: most misses need no look at the spelling
    int32_t id;    // -1: free
  };

  Result<void> build_index();
  bool insert(TokenId id);

  StringTable spellings_;
  std::vector<TokenType> types_;
  std::vector<float> scores_;
  std::vector<Slot> slots_;  // open addressing; a power of two, at most half full
  size_t longest_spelling_ = 0;
};

}  // namespace octavo
