#include "engine/score.h"

namespace octavo {

Result<WindowScore> score(Engine& engine, std::span<const TokenId> window) {
  if (window.size() < 2)
    return fail(ErrorCode::invalid_argument, "a window needs at least 2 tokens to predict one");
  Request request;
  request.prompt_token_ids.assign(window.begin(), window.end());
  request.params.max_tokens = 0;
  request.params.prompt_logprobs = 0;
  OCTAVO_TRY(const RequestOutput output, engine.run(std::move(request)));
  WindowScore score;
  for (const auto& position : output.prompt_logprobs) {
    if (!position) continue;  // the first token is not predicted
    score.nll -= double{position->entries.front().logprob};
    ++score.predicted_tokens;
  }
  return score;
}

}  // namespace octavo
