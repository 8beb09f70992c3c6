// What a finished request says, with vLLM's names.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "core/ids.h"
#include "sampling/logprobs.h"

namespace octavo {

enum class FinishReason : uint8_t { stop, length, abort, error };
std::string_view name(FinishReason reason);  // "stop", "length", "abort", "error"

// The stop string or the stop token that ended an answer; nothing for an end-of-answer token of the
// model or a limit.
using StopReason = std::variant<std::monostate, std::string, TokenId>;

struct CompletionOutput {
  int index = 0;
  std::string text;
  std::vector<TokenId> token_ids;                 // a final end or stop token included
  std::vector<TokenLogprobs> logprobs;            // one per token, if asked for
  std::optional<double> cumulative_logprob = {};  // of all its tokens, if logprobs were asked for
  FinishReason finish_reason = FinishReason::length;
  StopReason stop_reason;
};

// Times are seconds of the engine's clock; 0: it did not come to that.
struct RequestMetrics {
  double arrival_ts = 0;      // handed to the engine
  double scheduled_ts = 0;    // first step that worked on it
  double first_token_ts = 0;  // first token of any choice
  double last_token_ts = 0;
  int num_generation_tokens = 0;  // of all choices
  int max_tokens = 0;             // that each choice may have had, by the request or the context
  int num_preemptions = 0;
  int decode_steps = 0;         // steps after the one that gave the first token
  bool speculates = false;      // tokens of it may be guessed
  int num_draft_tokens = 0;     // guesses that were verified
  int num_accepted_tokens = 0;  // of them, that came true

  double queued_s() const { return scheduled_ts - arrival_ts; }
  double prefill_s() const { return first_token_ts - scheduled_ts; }
  double decode_s() const { return last_token_ts - first_token_ts; }
};

struct RequestOutput {
  int64_t request_id = -1;                 // of the engine; -1: it never got there
  std::optional<std::string> prompt = {};  // its text, where the caller gave text or messages
  std::vector<TokenId> prompt_token_ids;
  std::vector<std::optional<TokenLogprobs>>
      prompt_logprobs;  // one per prompt token, the first nothing; if asked for
  std::vector<CompletionOutput> outputs;
  std::vector<float> embedding = {};       // of a request with `pooling`, which has no outputs
  bool finished = false;                   // there will be no more, for whatever reason
  uint64_t seed = 0;                       // the one used, given or fresh
  int num_cached_tokens = 0;               // of the prompt, found in the prefix cache
  std::vector<std::string> warnings = {};  // sentences that name what was asked for to no effect
  std::optional<Error> error = {};  // what ended it; the outputs are what there was until then
  RequestMetrics metrics = {};
};

}  // namespace octavo
