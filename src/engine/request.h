// What the engine is asked for, and whom it tells.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/ids.h"
#include "core/pooling.h"
#include "core/sampling_params.h"
#include "core/token_mask.h"
#include "engine/outputs.h"

namespace octavo {

class LoraAdapter;
struct AnswerRules;

enum class RequestId : int64_t {};

struct Request {
  std::vector<TokenId> prompt_token_ids = {};
  SamplingParams params = {};
  // Taken out of params, and shared by requests with the same ones; nullptr: submit() takes them.
  std::shared_ptr<const AnswerRules> rules = {};
  int priority = 0;             // lower goes first, under SchedulingPolicy::priority
  std::string cache_salt = {};  // requests share prefixes only with those of the same salt
  // Of this model, and shared until the request ends; nullptr: EngineCoreOptions::adapter.
  std::shared_ptr<const LoraAdapter> adapter = {};
  // Wanted is RequestOutput::embedding and no text: of params nothing is read.
  std::optional<PoolingParams> pooling = {};
  // Control tokens that the text shows although skip_special_tokens leaves the others out.
  std::vector<TokenId> shown_control_tokens = {};
  TokenMask allowed_tokens = {};  // narrows what is drawn; empty: params alone say
  // Tokens that may be guessed at a time, at most; 0: none; unset: as many as the engine does. No
  // answer depends on it.
  std::optional<int> num_speculative_tokens = {};
  // What much of the answer may repeat; may be nullptr.
  std::shared_ptr<const std::vector<TokenId>> prediction = {};
};

// What choice `index` gained, a token at a time; concatenated, the texts are
// CompletionOutput::text, and so on. Valid during the call.
struct ChoiceDelta {
  int index = 0;
  int64_t step = 0;            // of the engine: guesses that came true come with the same
  std::string_view text = {};  // may be empty: held back until it is complete
  std::span<const TokenId> token_ids = {};
  std::span<const TokenLogprobs> logprobs = {};  // one per token, if asked for
  // Of the last delta of a choice, unless its request ends first: then on_finish tells.
  std::optional<FinishReason> finish_reason = {};
  const StopReason* stop_reason = nullptr;  // with finish_reason
};

// Called on the engine's thread, between steps: they must be quick, and may call Engine::cancel().
// All but on_finish may be empty.
struct RequestEvents {
  std::function<void(const ChoiceDelta&)> on_delta;
  // Prompt tokens that are in the cache, for a progress bar; again from the start after a
  // preemption.
  std::function<void(int done, int total)> on_prefill;
  // The prompt is in the cache, and before the first delta: what is known of it (ids, seed,
  // num_cached_tokens, prompt_logprobs).
  std::function<void(const RequestOutput&)> on_prompt_done;
  // The last event of every request, exactly once.
  std::function<void(RequestOutput)> on_finish;
};

}  // namespace octavo
