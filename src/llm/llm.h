// Text from a language model, in a program of your own. This header is the whole API.
//
//   octavo::LLM llm({.model = "smollm2-135m"});
//   for (const octavo::RequestOutput& output : llm.generate({"Once upon a time", "The sky is"}))
//     std::cout << output.outputs[0].text << "\n";
//
// Names and defaults are those of vLLM's LLM. Prompts of one call, and of calls from several
// threads, are computed together. What goes wrong with one prompt is in its RequestOutput::error;
// the others are not touched by it.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/pooling.h"
#include "core/sampling_params.h"
#include "engine/engine_options.h"
#include "engine/outputs.h"
#include "kv/prefix_stats.h"
#include "llm/prompt.h"
#include "llm/run.h"
#include "sched/scheduler.h"
#include "text/tokenizer.h"

namespace octavo {

// Of what cannot be a return value: constructors, and calls with arguments that do not fit.
class LLMError : public std::runtime_error {
 public:
  explicit LLMError(Error error);
  const Error& error() const { return error_; }

 private:
  Error error_;
};

// All of a call may be left empty. The functions are called on the caller's thread.
struct GenerateOptions {
  std::function<void(const StreamEvent&)> on_event = {};  // as it comes, in place of Stream
  std::function<void(size_t done, size_t total)> on_progress = {};
  std::stop_token cancel = {};  // the answers end where they are, with FinishReason::abort
};

// What the engine counted since it was made, and its present state.
struct EngineMetrics {
  SchedulerStats scheduler;
  PrefixStats prefix_cache;
};

// The events of a call, one after the other. The LLM must outlive it; an end before the last event
// cancels the rest.
class Stream {
 public:
  // Waits; nothing: all prompts have ended.
  std::optional<StreamEvent> next() { return run_->next(); }
  // From any thread. The event with the output still comes, with FinishReason::abort.
  void cancel(size_t prompt_index) { run_->cancel(prompt_index); }
  // Prompts that have not begun give no event.
  void cancel() { run_->cancel_all(); }

 private:
  friend class LLM;
  explicit Stream(std::unique_ptr<Run> run) : run_(std::move(run)) {}
  std::unique_ptr<Run> run_;
};

// All member functions may be called from any threads at once.
class LLM {
 public:
  // options.model: a GGUF file or a short name. Throws LLMError.
  explicit LLM(EngineOptions options);
  static Result<LLM> load(EngineOptions options);
  LLM(LLM&&) noexcept;
  LLM& operator=(LLM&&) noexcept;
  ~LLM();

  // Waits for all answers; outputs are in the order of the prompts, one for each, and have an entry
  // for each of params.n choices. Without params: get_default_sampling_params().
  std::vector<RequestOutput> generate(std::span<const Prompt> prompts);
  std::vector<RequestOutput> generate(std::span<const Prompt> prompts, const SamplingParams& params,
                                      const GenerateOptions& options = {});
  // One of params for each prompt; LLMError if there are more or fewer.
  std::vector<RequestOutput> generate(std::span<const Prompt> prompts,
                                      std::span<const SamplingParams> params,
                                      const GenerateOptions& options = {});
  RequestOutput generate(const Prompt& prompt);
  RequestOutput generate(const Prompt& prompt, const SamplingParams& params,
                         const GenerateOptions& options = {});

  // {"a", "b"}, and whatever holds what a Prompt can be made from.
  template <class... Args>
  auto generate(std::initializer_list<Prompt> prompts, const Args&... args) {
    return generate(std::span<const Prompt>(prompts.begin(), prompts.size()), args...);
  }
  template <std::ranges::input_range Range, class... Args>
  requires(std::convertible_to<std::ranges::range_reference_t<const Range&>, Prompt> &&
           !std::convertible_to<const Range&,
                                std::span<const Prompt>>) auto generate(const Range& prompts,
                                                                        const Args&... args) {
    const std::vector<Prompt> owned(std::ranges::begin(prompts), std::ranges::end(prompts));
    return generate(std::span<const Prompt>(owned), args...);
  }

  // The same for conversations, through the model's chat template.
  std::vector<RequestOutput> chat(std::span<const ChatMessages> conversations,
                                  const SamplingParams& params, const ChatOptions& chat = {},
                                  const GenerateOptions& options = {});
  RequestOutput chat(const ChatMessages& messages);
  RequestOutput chat(const ChatMessages& messages, const SamplingParams& params,
                     const ChatOptions& chat = {}, const GenerateOptions& options = {});

  // A vector for each prompt, RequestOutput::embedding. Without params:
  // get_default_pooling_params().
  std::vector<RequestOutput> embed(std::span<const Prompt> prompts);
  std::vector<RequestOutput> embed(std::span<const Prompt> prompts, const PoolingParams& params,
                                   const GenerateOptions& options = {});

  Stream stream(std::vector<Prompt> prompts, const SamplingParams& params,
                std::stop_token cancel = {});
  Stream stream_chat(std::vector<ChatMessages> conversations, const SamplingParams& params,
                     const ChatOptions& chat = {}, std::stop_token cancel = {});

  // temperature and top_p of the model where they are known; else SamplingParams().
  SamplingParams get_default_sampling_params() const;
  // As the model, or EngineOptions::pooling_type, says.
  PoolingParams get_default_pooling_params() const;
  const Tokenizer& get_tokenizer() const;
  // As generate() does it. Errors: those of Tokenizer::encode.
  Result<std::vector<TokenId>> encode(std::string_view text) const;
  std::string decode(std::span<const TokenId> ids, bool skip_special_tokens = true) const;
  int max_model_len() const;                      // tokens of a prompt and its answer
  const std::vector<std::string>& notes() const;  // on how the model was loaded

  // Forgets all K and V that nobody uses at the moment, but for what is pinned.
  void reset_prefix_cache();
  // Computes the prompt, if it is not in the prefix cache, and keeps it there. Returns the number
  // of its tokens. Errors: those of a request; unsupported without a prefix cache;
  // resource_exhausted if the longest sequence would have no room beside all that is pinned.
  Result<int> pin_prefix(const Prompt& prompt);
  void unpin_prefixes();
  // An adapter for Prompt::adapter, from a PEFT folder or a GGUF file; EngineOptions::max_lora_rank
  // says how large it may be. Errors: those of load_adapter(); invalid_argument if that is 0.
  Result<std::shared_ptr<const LoraAdapter>> load_lora(const std::string& path) const;
  EngineMetrics get_metrics() const;

 private:
  struct Impl;
  explicit LLM(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace octavo
