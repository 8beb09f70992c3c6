// Texts of tokens, and where in them a run of tokens stands.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/draft_tree.h"
#include "core/ids.h"

namespace octavo {

// What may come next, by how often it did.
struct Continuation {
  std::vector<TokenId> tokens = {};
  std::vector<int> parents = {};  // see DraftTree
  double probability = 0;         // of the least likely of them, with all before it
  int match_length = 0;           // tokens before it that stood there too
};

struct ContinuationLimits {
  int max_depth = 24;           // tokens compared
  int max_tokens = 0;           // of the continuation
  int branching_factor = 1;     // different tokens for one place
  double tokens_per_match = 1;  // one after the other
  double min_probability = 0;
};

// Appending is O(1), memory 12 bytes a token and a table entry for each different run of kRun.
class TokenIndex {
 public:
  // The shortest run that is found. Of one token much stands before by accident.
  static constexpr int kRun = 2;

  void append(TokenId token);
  void end_text();  // runs do not reach over it
  void clear();
  size_t size() const { return tokens_.size(); }

  // After the last of `context`: of all ways on the most frequent tokens. Deterministic: the latest
  // places count, and of equally frequent tokens the one that stood there last wins.
  Continuation continuation(std::span<const TokenId> context,
                            const ContinuationLimits& limits) const;

 private:
  static constexpr TokenId kEnd{-1};
  static constexpr uint32_t kNone = ~0u;
  // Places that are looked at, the latest ones: enough for frequencies.
  static constexpr int kMaxPlaces = 64;

  static uint64_t key(const TokenId* last);
  void find_places(std::span<const TokenId> context, int max_depth) const;
  size_t match_length(std::span<const TokenId> context, size_t at, size_t most) const;
  struct Way;
  void add_ways(const Way& from, const ContinuationLimits& limits, std::vector<Way>& open) const;
  TokenId most_frequent(const std::vector<uint32_t>& places, size_t offset, size_t& count) const;

  std::vector<TokenId> tokens_;     // kEnd between texts
  std::vector<uint32_t> previous_;  // of each place: the one before with the same run
  std::unordered_map<uint64_t, uint32_t> latest_;  // by run: the place after it
  mutable std::vector<uint32_t> places_;           // of the longest match; kept for their memory
  mutable size_t length_ = 0;                      // of that match
};

}  // namespace octavo
