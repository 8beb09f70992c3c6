#include "engine/sequence.h"

#include <algorithm>

namespace octavo {
namespace {

constexpr int kReservedTokens = 256;

}  // namespace

std::string_view name(FinishReason reason) {
  switch (reason) {
    case FinishReason::stop:
      return "stop";
    case FinishReason::length:
      return "length";
    case FinishReason::abort:
      return "abort";
    case FinishReason::error:
      return "error";
  }
  return "";
}

Sequence::Sequence(int index, const SamplingParams& params, const AnswerRules& rules,
                   const Tokenizer& tokenizer, int max_tokens,
                   std::span<const TokenId> shown_control_tokens)
    : params_(params),
      rules_(rules),
      tokenizer_(tokenizer),
      detokenizer_(tokenizer, params.skip_special_tokens, SpacePrefix::keep, shown_control_tokens),
      stream_(rules.stops, params.include_stop_str_in_output),
      max_tokens_(max_tokens) {
  output_.index = index;
  // So that a step seldom allocates but for the text.
  output_.token_ids.reserve(static_cast<size_t>(std::min(max_tokens, kReservedTokens)));
}

std::string Sequence::commit(Sample sample) {
  output_.token_ids.push_back(sample.token);
  if (sample.logprobs) add_logprobs(std::move(*sample.logprobs));

  const bool end_of_answer = !params_.ignore_eos && tokenizer_.is_eog(sample.token);
  if (end_of_answer || rules_.tokens.is_stop_token(sample.token)) {
    std::string text;
    if (params_.include_stop_str_in_output) text = add_token(sample.token);
    if (finished_) return text;
    return text +
           finish(FinishReason::stop, end_of_answer ? StopReason{} : StopReason{sample.token});
  }
  std::string text = add_token(sample.token);
  if (!finished_ && static_cast<int>(tokens().size()) >= max_tokens_)
    text += finish(FinishReason::length, {});
  return text;
}

std::string Sequence::end(FinishReason reason) { return finish(reason, {}); }

void Sequence::add_logprobs(TokenLogprobs logprobs) {
  for (const LogprobEntry& entry : logprobs.entries)
    if (entry.id == logprobs.chosen)
      output_.cumulative_logprob = output_.cumulative_logprob.value_or(0) + entry.logprob;
  output_.logprobs.push_back(std::move(logprobs));
}

std::string Sequence::add_token(TokenId token) {
  return params_.detokenize ? add_text(detokenizer_.push(token)) : std::string();
}

// Stop strings count from the min_tokens-th token on.
std::string Sequence::add_text(std::string_view text) {
  const bool armed = static_cast<int>(tokens().size()) >= params_.min_tokens;
  std::string shown = armed ? stream_.push(text) : stream_.pass(text);
  if (stream_.stopped()) {
    finished_ = true;
    output_.finish_reason = FinishReason::stop;
    output_.stop_reason = *stream_.stopped();
  }
  output_.text += shown;
  return shown;
}

std::string Sequence::finish(FinishReason reason, StopReason why) {
  std::string rest = add_text(detokenizer_.finish());
  if (finished_) return rest;  // the very last bytes completed a stop string
  finished_ = true;
  output_.finish_reason = reason;
  output_.stop_reason = std::move(why);
  std::string held = stream_.finish();
  output_.text += held;
  return rest + held;
}

}  // namespace octavo
