// What a finished request says, with vLLM's names.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/ids.h"
#include "sampling/logprobs.h"

namespace octavo {

enum class FinishReason : uint8_t { stop, length, abort };
std::string_view name(FinishReason reason);  // "stop", "length", "abort"

// The stop string or the stop token that ended an answer; nothing for an end-of-answer token of the
// model or a limit.
using StopReason = std::variant<std::monostate, std::string, TokenId>;

struct CompletionOutput {
  int index = 0;
  std::string text;
  std::vector<TokenId> token_ids;       // a final end or stop token included
  std::vector<TokenLogprobs> logprobs;  // one per token, if asked for
  FinishReason finish_reason = FinishReason::length;
  StopReason stop_reason;
};

struct RequestMetrics {  // seconds
  double prefill_s = 0;  // until the first token was sampled
  double decode_s = 0;   // the rest
  int decode_steps = 0;
};

struct RequestOutput {
  std::vector<TokenId> prompt_token_ids;
  std::vector<std::optional<TokenLogprobs>>
      prompt_logprobs;  // one per prompt token, the first nothing; if asked for
  std::vector<CompletionOutput> outputs;
  uint64_t seed = 0;  // the one used, given or fresh
  RequestMetrics metrics;
};

}  // namespace octavo
