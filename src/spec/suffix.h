// Suffix decoding: guesses from what was written before, in the sequence itself and in finished
// answers: after the longest run of last tokens that stood somewhere before, what followed it most
// often.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <unordered_map>

#include "spec/drafter.h"
#include "spec/token_index.h"

namespace octavo {

// With vLLM's names and defaults.
struct SuffixOptions {
  int max_tree_depth = 24;          // tokens that are compared, and most of a guess
  int max_cached_requests = 10000;  // finished answers that are remembered, about; 0: none
  double max_spec_factor = 1.0;     // tokens of a guess for each token that matched
  double min_token_prob = 0.1;      // of a whole guess, by the frequencies of what followed
  int branching_factor = 1;         // guesses for one place
};

class SuffixDrafter final : public Drafter {
 public:
  explicit SuffixDrafter(const SuffixOptions& options) : options_(options) {}

  std::string_view name() const override { return "suffix"; }
  void propose(std::span<DraftTask* const> tasks) override;
  void finish(const FinishedSequence& sequence) override;

 private:
  // Finished answers. When the newer generation has half of what is remembered, it becomes
  // the older one.
  struct Generation {
    std::map<PrefixKey, TokenIndex> by_key;
    int num_answers = 0;
    size_t num_tokens = 0;
  };

  TokenIndex& own_index(const DraftTask& task);

  SuffixOptions options_;
  std::unordered_map<SeqId, std::unique_ptr<TokenIndex>> own_;
  std::array<Generation, 2> generations_;  // the newer first
};

}  // namespace octavo
