#include "server/api_request.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "server/api_fields.h"
#include "server/api_json.h"

namespace octavo {
namespace {

constexpr int kDefaultMaxTokens = 16;  // of /v1/completions, as OpenAI's

ApiResult<RequestDraft> read_body(std::string_view body, Endpoint endpoint,
                                  const ApiLimits& limits) {
  RequestDraft draft;
  draft.params = limits.defaults;
  draft.params.max_tokens.reset();
  OCTAVO_TRY(BodyFields fields, parse_body(body));
  OCTAVO_CHECK_OK(read_fields(fields, endpoint, limits, draft));
  draft.max_tokens_is_default = endpoint == kCompletions && !draft.params.max_tokens;
  if (draft.max_tokens_is_default) draft.params.max_tokens = kDefaultMaxTokens;
  return draft;
}

ApiResult<void> check_stream(const RequestDraft& draft) {
  if (draft.has_stream_options && !draft.stream)
    return refuse_field("stream_options", "stream_options needs stream to be true");
  return {};
}

ApiResult<void> check_choices(const RequestDraft& draft, size_t num_prompts,
                              const ApiLimits& limits) {
  const auto n = static_cast<size_t>(draft.params.n);
  if (n * num_prompts <= static_cast<size_t>(limits.max_choices)) return {};
  return refuse_field("n", fmt::format("n is {} and there are {} prompts; allowed: together at "
                                       "most {} choices",
                                       n, num_prompts, limits.max_choices));
}

// What validate() finds now is between two fields: each was checked alone.
ApiResult<void> check_params(const RequestDraft& draft, const ApiLimits& limits) {
  const auto valid = validate(draft.params, limits.vocab_size, limits.max_logprobs);
  if (!valid) return refuse_field("min_tokens", valid.error().message);
  return {};
}

void resolve_truncation(RequestDraft& draft, const ApiLimits& limits) {
  if (draft.truncate_prompt_tokens != -1) return;
  const int answer = std::min(draft.params.max_tokens.value_or(1), limits.max_model_len - 1);
  draft.truncate_prompt_tokens = std::max(limits.max_model_len - answer, 1);
}

ApiResult<void> check_best_of(const RequestDraft& draft) {
  if (draft.best_of.value_or(draft.params.n) == draft.params.n) return {};
  return refuse_unsupported(
      "best_of",
      fmt::format("best_of is {} and n is {}; only as many as n are served: ask for more "
                  "choices and keep the best",
                  *draft.best_of, draft.params.n));
}

ApiResult<void> check_generation(RequestDraft& draft, size_t num_prompts, const ApiLimits& limits) {
  OCTAVO_CHECK_OK(check_stream(draft));
  OCTAVO_CHECK_OK(check_best_of(draft));
  OCTAVO_CHECK_OK(check_choices(draft, num_prompts, limits));
  OCTAVO_CHECK_OK(check_params(draft, limits));
  resolve_truncation(draft, limits);
  draft.continuous_usage_stats &= draft.include_usage;
  return {};
}

// Clients that know the newer name often have a default for the older one, too.
void join_max_tokens(RequestDraft& draft) {
  std::optional<int>& max_tokens = draft.params.max_tokens;
  const std::optional<int> newer = draft.max_completion_tokens;
  if (!newer) return;
  if (max_tokens && max_tokens != newer)
    draft.warnings.push_back(fmt::format(
        "max_tokens is {} and has no effect: max_completion_tokens is {}", *max_tokens, *newer));
  max_tokens = newer;
}

ApiResult<void> check_suffix(const RequestDraft& draft, const ApiLimits& limits) {
  if (draft.suffix.empty()) return {};
  if (!limits.fills_in)
    return refuse_unsupported("suffix",
                              "suffix needs a model with tokens for filling in the middle, which "
                              "this one has not; leave it out");
  if (draft.echo || draft.truncate_prompt_tokens)
    return refuse_field("suffix",
                        "suffix goes with neither echo nor truncate_prompt_tokens: the prompt is "
                        "not the beginning of what the model reads; leave one of them out");
  return {};
}

// Of a field that has to be there; it may be there under a misspelled name.
tl::unexpected<ApiError> refuse_missing(std::string_view name, const RequestDraft& draft) {
  return refuse_field(name,
                      fmt::format("{} is missing{}{}", name, draft.warnings.empty() ? "" : "; ",
                                  fmt::join(draft.warnings, "; ")));
}

ApiResult<void> join_logprobs(RequestDraft& draft) {
  if (draft.top_logprobs.value_or(0) != 0 && !draft.chat_logprobs)
    return refuse_field("top_logprobs", "top_logprobs needs logprobs to be true");
  draft.params.logprobs.reset();
  if (draft.chat_logprobs) draft.params.logprobs = draft.top_logprobs.value_or(0);
  return {};
}

ApiResult<void> check_chat_options(const ChatOptions& chat) {
  if (!chat.add_generation_prompt.value_or(false) || !chat.continue_final_message) return {};
  return refuse_field("continue_final_message",
                      "continue_final_message and add_generation_prompt contradict each other; set "
                      "the second to false or leave it out");
}

// An echo with logprobs has those of the prompt, too.
void add_echo_logprobs(RequestDraft& draft) {
  SamplingParams& params = draft.params;
  if (draft.echo && params.logprobs && !params.prompt_logprobs)
    params.prompt_logprobs = params.logprobs;
}

ApiResult<void> expect_one_text(const RequestDraft& draft) {
  const int given =
      draft.prompt_text.has_value() + draft.content.has_value() + draft.messages.has_value();
  if (given == 1) return {};
  return refuse_field(
      "prompt", fmt::format("one of prompt, messages and content is needed, and "
                            "there {}{}{}",
                            given == 0 ? "is none" : "are several",
                            draft.warnings.empty() ? "" : "; ", fmt::join(draft.warnings, "; ")));
}

}  // namespace

ApiResult<ChatRequest> parse_chat_request(std::string_view body, const ApiLimits& limits) {
  OCTAVO_TRY(RequestDraft draft, read_body(body, kChat, limits));
  if (!draft.messages) return refuse_missing("messages", draft);
  join_max_tokens(draft);
  OCTAVO_CHECK_OK(join_logprobs(draft));
  OCTAVO_CHECK_OK(check_chat_options(draft.chat));
  OCTAVO_CHECK_OK(check_generation(draft, 1, limits));
  return ChatRequest{static_cast<GenerationRequest&&>(draft),
                     std::move(*draft.messages),
                     draft.chat,
                     std::move(draft.chat_template),
                     std::move(draft.chat_template_kwargs),
                     draft.hides_tools ? nullptr : std::move(draft.tools),
                     draft.parallel_tool_calls,
                     draft.include_reasoning,
                     draft.add_special_tokens.value_or(false)};
}

ApiResult<CompletionRequest> parse_completion_request(std::string_view body,
                                                      const ApiLimits& limits) {
  OCTAVO_TRY(RequestDraft draft, read_body(body, kCompletions, limits));
  if (draft.prompts.empty()) return refuse_missing("prompt", draft);
  OCTAVO_CHECK_OK(check_suffix(draft, limits));
  add_echo_logprobs(draft);
  OCTAVO_CHECK_OK(check_generation(draft, draft.prompts.size(), limits));
  return CompletionRequest{static_cast<GenerationRequest&&>(draft), std::move(draft.prompts),
                           std::move(draft.suffix), draft.add_special_tokens.value_or(true),
                           draft.parse_special};
}

ApiResult<EmbeddingRequest> parse_embedding_request(std::string_view body,
                                                    const ApiLimits& limits) {
  OCTAVO_TRY(RequestDraft draft, read_body(body, kEmbeddings, limits));
  if (draft.prompts.empty()) return refuse_missing("input", draft);
  return EmbeddingRequest{static_cast<GenerationRequest&&>(draft),
                          std::move(draft.prompts),
                          draft.encoding_format == "base64",
                          draft.dimensions,
                          draft.normalize,
                          draft.add_special_tokens.value_or(true),
                          draft.parse_special};
}

ApiResult<TokenizeRequest> parse_tokenize_request(std::string_view body, const ApiLimits& limits) {
  OCTAVO_TRY(RequestDraft draft, read_body(body, kTokenize, limits));
  OCTAVO_CHECK_OK(expect_one_text(draft));
  OCTAVO_CHECK_OK(check_chat_options(draft.chat));
  const bool is_llama_shape = draft.content.has_value();
  const bool is_plain_text = draft.prompt_text.has_value();
  return TokenizeRequest{
      .model = std::move(draft.model),
      .text = is_llama_shape ? std::move(draft.content) : std::move(draft.prompt_text),
      .messages = std::move(draft.messages),
      .chat = draft.chat,
      .chat_template = std::move(draft.chat_template),
      .chat_template_kwargs = std::move(draft.chat_template_kwargs),
      .tools = std::move(draft.tools),
      .add_special_tokens = draft.add_special_tokens.value_or(is_plain_text),
      .parse_special = draft.parse_special,
      .return_token_strs = draft.return_token_strs,
      .is_llama_shape = is_llama_shape,
      .warnings = std::move(draft.warnings)};
}

ApiResult<DetokenizeRequest> parse_detokenize_request(std::string_view body,
                                                      const ApiLimits& limits) {
  OCTAVO_TRY(RequestDraft draft, read_body(body, kDetokenize, limits));
  if (!draft.tokens) return refuse_missing("tokens", draft);
  return DetokenizeRequest{.model = std::move(draft.model),
                           .tokens = std::move(*draft.tokens),
                           .warnings = std::move(draft.warnings)};
}

}  // namespace octavo
