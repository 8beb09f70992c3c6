#include "spec/extend_guess.h"

#include <utility>

#include "base/rng.h"

namespace octavo {
namespace {

// Of a number that was drawn with before, the answer may know something already: if the guess
// before failed, this place is guessed again, and whether it is may depend on what came of it then.
Result<TokenId> draw_guess(DraftTask& task, std::span<const float> row,
                           const SampleRequest& request, Sampler& sampler) {
  OCTAVO_TRY(Distribution q, sampler.distribution(row, request));
  const auto index = static_cast<uint32_t>(task.draft.size());
  const TokenId token = q.draw(
      uniform(request.seed, request.choice, request.history.position(), RandomUse::guess, index));
  task.q.push_back(std::move(q));
  return token;
}

}  // namespace

bool extend_guess(DraftTask& task, std::span<const TokenId> tokens, std::span<const float> row,
                  RejectionSampleMethod method, Sampler& sampler) {
  const auto prompt = static_cast<size_t>(task.prompt_tokens);
  SamplingParams params = *task.params;
  params.logprobs.reset();
  const TokenHistory history{tokens.first(prompt), tokens.subspan(prompt)};
  const std::vector<uint64_t> allowed =
      allowed_after(task.allowed_tokens, history.generated, sampler.num_tokens());
  const SampleRequest request{.params = params,
                              .seed = task.seed,
                              .choice = task.choice,
                              .history = history,
                              .eog = task.eog,
                              .rules = task.rules,
                              .allowed = allowed};
  const bool drawn = method == RejectionSampleMethod::probabilistic && !is_greedy(params);
  const Result<TokenId> token =
      drawn ? draw_guess(task, row, request, sampler)
            : sampler.sample(row, request).map([](const Sample& sample) { return sample.token; });
  if (token) task.draft.push_back(*token);
  return token.has_value();
}

}  // namespace octavo
