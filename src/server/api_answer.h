// Answers in OpenAI's shapes: whole, and as the events of a stream.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/outputs.h"
#include "server/api_error.h"
#include "server/api_request.h"
#include "text/tokenizer.h"

namespace octavo {

struct AnswerHead {
  std::string id;  // "chatcmpl-..."
  int64_t created = 0;
  std::string model;                    // as it was asked for
  std::string system_fingerprint = {};  // what answers depend on beside the seed; empty: null
  uint64_t call_seed = 0;               // of the ids of calls, which are not to meet again
};

// What one choice gained in one step.
struct ChoiceEvent {
  int prompt_index = 0;  // of a list of prompts
  int choice = 0;        // of this prompt, 0 to n - 1
  std::string text = {};
  std::vector<TokenId> token_ids = {};
  std::vector<TokenLogprobs> logprobs = {};
  std::optional<FinishReason> finish_reason = {};
  StopReason stop_reason = {};
};

// So far, or in the end; each prompt counts once.
struct Usage {
  int64_t prompt_tokens = 0;
  int64_t completion_tokens = 0;
  int64_t cached_tokens = 0;
  // Guessed tokens of what the engine may guess for; unset: it may not, or it is not known yet.
  struct Drafts {
    int64_t tokens = 0, accepted = 0;
  };
  std::optional<Drafts> drafts = {};
};

// How long the parts of an answer took, of the prompt that took longest.
struct Timings {
  double queue_s = 0, prefill_s = 0, decode_s = 0;
  Usage usage = {};
};

// Writes the answer to one request; one is made for each. All strings are one line of JSON, valid
// UTF-8, without "data: ". choices[].index is prompt_index * n + choice. A choice that was cut has
// finish_reason "abort" or "error". The tokenizer must outlive the writer.
class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;

  // Outputs in the order of the prompts.
  virtual std::string whole(std::span<const RequestOutput> outputs, const Timings& timings) = 0;

  // The events for what a choice gained: none if that says nothing yet (text that may begin a call
  // of a tool is held back), several if a client is to be told bit by bit. `usage` if it is to be
  // in it (continuous_usage_stats). prompt: known with the first event of a choice, whose prompt
  // may have to be repeated (echo, return_token_ids, prompt_logprobs), and whose seed is reported;
  // nullptr otherwise.
  virtual std::vector<std::string> events(const ChoiceEvent& event, const Usage* usage,
                                          const RequestOutput* prompt) = 0;

  // The event without choices at the end of a stream, with include_usage.
  virtual std::string usage_event(const Usage& usage, const Timings& timings, uint64_t seed) = 0;
};

std::unique_ptr<AnswerWriter> make_answer_writer(const ChatRequest& request,
                                                 const Tokenizer& tokenizer, AnswerHead head);
std::unique_ptr<AnswerWriter> make_answer_writer(const CompletionRequest& request,
                                                 const Tokenizer& tokenizer, AnswerHead head);

}  // namespace octavo
