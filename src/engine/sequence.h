// One choice of a request while it runs, and commit: the one place where a drawn token becomes part
// of an answer.
#pragma once

#include <span>
#include <string>

#include "core/sampling_params.h"
#include "engine/answer_rules.h"
#include "engine/outputs.h"
#include "engine/text_stream.h"
#include "sampling/sampler.h"
#include "text/detokenizer.h"

namespace octavo {

class Sequence {
 public:
  // max_tokens: tokens this choice may have at most, by the request and by the context. params,
  // rules and shown_control_tokens are the request's, which outlives this.
  Sequence(int index, const SamplingParams& params, const AnswerRules& rules,
           const Tokenizer& tokenizer, int max_tokens,
           std::span<const TokenId> shown_control_tokens);

  // Takes one token: logprobs, end tokens, text, stop strings, length. Returns the text that may
  // now be shown. REQUIRES: !finished().
  std::string commit(Sample sample);

  // Ends the answer from outside; returns the text that was held back.
  std::string end(FinishReason reason);

  bool finished() const { return finished_; }
  const std::vector<TokenId>& tokens() const { return output_.token_ids; }
  int index() const { return output_.index; }
  FinishReason finish_reason() const { return output_.finish_reason; }
  const StopReason& stop_reason() const { return output_.stop_reason; }
  const std::vector<TokenLogprobs>& logprobs() const { return output_.logprobs; }
  CompletionOutput take_output() { return std::move(output_); }

 private:
  void add_logprobs(TokenLogprobs logprobs);
  std::string add_token(TokenId token);
  std::string add_text(std::string_view text);
  std::string finish(FinishReason reason, StopReason why);

  const SamplingParams& params_;
  const AnswerRules& rules_;
  const Tokenizer& tokenizer_;
  CompletionOutput output_;
  Detokenizer detokenizer_;
  TextStream stream_;
  int max_tokens_;
  bool finished_ = false;
};

}  // namespace octavo
