// Speculative decoding: guesses what comes next in sequences. A guess never changes an answer, only
// how soon it is there: the engine computes the guessed tokens behind the known ones in one
// forward, draws the next token after each, and keeps those that were guessed right.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "core/draft_tree.h"
#include "core/ids.h"
#include "core/sampling_params.h"
#include "core/token_mask.h"
#include "kv/prefix_key.h"
#include "sampling/distribution.h"

namespace octavo {

class LoraAdapter;
class TokenRules;

// How guesses become tokens of a sampled answer.
enum class RejectionSampleMethod : uint8_t {
  strict,         // the token is drawn as if there were no guess, which came true if it is the same
  probabilistic,  // a guess that was drawn is kept with min(1, p / q)
};

// One sequence that waits for its next token.
struct DraftTask {
  SeqId id{};
  std::span<const TokenId> tokens;           // prompt and answer so far; not empty
  int prompt_tokens = 0;                     // the first of them
  int max_tokens = 0;                        // of the guess, at most; > 0
  std::span<const TokenId> prediction = {};  // what much of the answer may repeat
  PrefixKey key = {};  // what was learned or computed under one key is not used under another
  // How the next token will be drawn.
  const SamplingParams* params = nullptr;
  uint64_t seed = 0;
  uint32_t choice = 0;
  std::span<const TokenId> eog = {};  // as in SampleRequest, and so are these
  const TokenRules* rules = nullptr;
  const TokenMask* allowed_tokens = nullptr;  // nullptr: any
  const LoraAdapter* adapter = nullptr;       // of the sequence
  // The blocks that the model has its K and V in, with room for so many positions from the last
  // token on, to be written until propose() returns; empty: there are none. At most once.
  std::function<std::span<const BlockId>(int num_tokens)> lend_blocks = {};
  std::vector<TokenId> draft = {};  // the guess; empty: none
  std::vector<int> parents = {};    // of its tokens: see DraftTree; empty: a chain
  // What each of its tokens was drawn from; of those for one place, which are drawn in their order
  // and not put back, the first one's counts. Whether there is a token must not depend on which one
  // was drawn. Empty: they were not drawn, or with the numbers of the answer's own draws.
  std::vector<Distribution> q = {};
};

struct FinishedSequence {
  SeqId id{};
  std::span<const TokenId> prompt, answer;
  PrefixKey key = {};  // as of its tasks
};

// The KV blocks that a drafter has for itself.
struct DraftBlocks {
  int all = 0, free = 0, cached = 0;
};

class Drafter {
 public:
  virtual ~Drafter() = default;
  virtual std::string_view name() const = 0;
  // Fills `draft` of the tasks that it has a guess for. All have an empty one.
  virtual void propose(std::span<DraftTask* const> tasks) = 0;
  // There will be no more tasks of this sequence.
  virtual void finish(const FinishedSequence& sequence) = 0;
  virtual DraftBlocks blocks() const { return {}; }
};

}  // namespace octavo
