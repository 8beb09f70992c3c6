// Byte-pair encoding (BPE): merging, the part that both kinds of BPE share: join the best
// neighbouring pair until none is left. Linked list plus heap: O(n log n) whatever the input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <vector>

namespace octavo {

// What an encoding cost, for tests and limits, and who may end it. All counts only grow.
struct EncodeStats {
  uint64_t lookups = 0;        // pairs looked up in the vocabulary
  uint64_t heap_steps = 0;     // candidates taken from the heap
  uint64_t dropped_bytes = 0;  // bytes left out because the vocabulary has no token for them
  std::stop_token stop = {};   // looked at now and then; the tokens are of no use then
};

struct Symbol {
  uint32_t begin, size;  // bytes of the text; size 0: merged into its left neighbour
  int32_t id;            // token, or -1: none has this spelling
};

struct Merge {
  uint32_t priority;  // lower is better; among equals the leftmost pair goes first
  int32_t id;         // the joined token
};

// Which pairs may be joined.
class MergeRules {
 public:
  virtual ~MergeRules() = default;
  virtual std::optional<Merge> find(const Symbol& left, const Symbol& right) = 0;
};

class MergeEngine {
 public:
  // Joins symbols in place and removes those that went into others. Keeps its memory for reuse.
  void run(std::vector<Symbol>& symbols, MergeRules& rules, EncodeStats& stats);

 private:
  // A pair is known by its left symbol: the right one is its neighbour.
  struct Candidate {
    uint64_t order;  // priority, then position of the left symbol
    uint32_t size;   // of both together: a candidate whose symbols have grown since is stale
    int32_t id;
  };
  struct Links {
    uint32_t previous, next;
  };
  static bool after(const Candidate& a, const Candidate& b) { return a.order > b.order; }

  void link(size_t count);
  bool is_stale(const std::vector<Symbol>& symbols, uint32_t left, uint32_t size) const;
  std::optional<Candidate> candidate(const std::vector<Symbol>& symbols, uint32_t left,
                                     MergeRules& rules, EncodeStats& stats) const;
  void push(std::optional<Candidate> candidate);
  void join(std::vector<Symbol>& symbols, uint32_t left, const Candidate& merged);

  std::vector<Candidate> heap_;
  std::vector<Links> links_;
};

}  // namespace octavo
