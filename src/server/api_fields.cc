#include "server/api_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <type_traits>

#include "formats/quote.h"
#include "server/api_messages.h"
#include "server/api_prompts.h"
#include "server/api_tools.h"
#include "server/api_unknown_fields.h"
#include "server/api_values.h"
#include "spec/draft_length.h"
#include "text/effort_variables.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;
using Context = FieldContext;
using P = SamplingParams;
using D = RequestDraft;

constexpr uint8_t kGenerate = kChat | kCompletions;
constexpr uint8_t kMessages = kChat | kTokenize;
constexpr uint8_t kQueued = kGenerate | kEmbeddings;
constexpr uint8_t kAllButDetokenize = kQueued | kTokenize;
constexpr uint8_t kAll = kAllButDetokenize | kDetokenize;
constexpr size_t kMaxNameBytes = 256;
constexpr size_t kMaxTemplateVariables = 1024;

template <class T>
ApiResult<void> read_as(const Json& value, const Context& c, T& out) {
  if (const auto read = read_value(value, out); !read)
    return refuse_field(c.field.name, fmt::format("{} must be {}", c.field.name, read.error()));
  return {};
}

template <auto Member>
ApiResult<void> plain(Json& value, const Context& c) {
  return read_as(value, c, c.draft.*Member);
}

ApiResult<void> check_range(const P& params, const Context& c) {
  const auto valid = validate(params, c.limits.vocab_size, c.limits.max_logprobs);
  if (valid) return {};
  const std::string& message = valid.error().message;
  return refuse_field(c.field.name, message.starts_with(c.field.name)
                                        ? message
                                        : fmt::format("{}: {}", c.field.name, message));
}

// Read alone, so that what validate() finds is of this field.
template <auto Member>
ApiResult<std::decay_t<decltype(P().*Member)>> read_alone(const Json& value, const Context& c) {
  P alone;
  alone.max_tokens.reset();
  OCTAVO_CHECK_OK(read_as(value, c, alone.*Member));
  OCTAVO_CHECK_OK(check_range(alone, c));
  return std::move(alone.*Member);
}

template <auto Member>
ApiResult<void> sampling(Json& value, const Context& c) {
  OCTAVO_TRY(c.draft.params.*Member, read_alone<Member>(value, c));
  return {};
}

ApiResult<void> read_model(Json& value, const Context& c) {
  return read_as(value, c, c.draft.model.emplace());
}

ApiResult<void> read_messages(Json& value, const Context& c) {
  OCTAVO_CHECK_OK(check_messages(value));
  c.draft.messages = std::move(value);
  return {};
}

ApiResult<void> read_prompt(Json& value, const Context& c) {
  OCTAVO_TRY(c.draft.prompts, read_prompts(value, c.field.name, c.limits.max_choices, c.limits));
  return {};
}

ApiResult<void> read_input(Json& value, const Context& c) {
  OCTAVO_TRY(c.draft.prompts, read_prompts(value, c.field.name, kMaxEmbeddingInputs, c.limits));
  return {};
}

ApiResult<void> read_encoding_format(Json& value, const Context& c) {
  OCTAVO_CHECK_OK(read_as(value, c, c.draft.encoding_format));
  if (c.draft.encoding_format == "float" || c.draft.encoding_format == "base64") return {};
  return refuse_field(c.field.name, "encoding_format must be float or base64");
}

ApiResult<void> read_dimensions(Json& value, const Context& c) {
  int& dimensions = c.draft.dimensions.emplace();
  OCTAVO_CHECK_OK(read_as(value, c, dimensions));
  if (dimensions >= 1 && dimensions <= c.limits.embedding_size &&
      (c.limits.matryoshka || dimensions == c.limits.embedding_size))
    return {};
  return refuse_field(
      c.field.name,
      c.limits.matryoshka
          ? fmt::format("dimensions is {}; allowed: 1 to {}", dimensions, c.limits.embedding_size)
          : fmt::format("dimensions is {}; allowed: {}, all that there are. This model is not said "
                        "to have been trained for fewer; --matryoshka of the server allows it",
                        dimensions, c.limits.embedding_size));
}

ApiResult<void> read_stream_options(Json& value, const Context& c) {
  if (!value.is_object()) return refuse_field(c.field.name, "stream_options must be an object");
  c.draft.has_stream_options = true;
  const auto read = [&](const char* name, bool& out) -> ApiResult<void> {
    const auto found = value.find(name);
    if (found == value.end() || found->is_null() || read_value(*found, out)) return {};
    const std::string place = fmt::format("stream_options.{}", name);
    return refuse_field(place, place + " must be true or false");
  };
  OCTAVO_CHECK_OK(read("include_usage", c.draft.include_usage));
  return read("continuous_usage_stats", c.draft.continuous_usage_stats);
}

ApiResult<void> read_max_completion_tokens(Json& value, const Context& c) {
  OCTAVO_TRY(c.draft.max_completion_tokens, read_alone<&P::max_tokens>(value, c));
  return {};
}

ApiResult<void> read_best_of(Json& value, const Context& c) {
  OCTAVO_TRY(c.draft.best_of, read_alone<&P::n>(value, c));
  return {};
}

ApiResult<void> read_top_logprobs(Json& value, const Context& c) {
  OCTAVO_TRY(c.draft.top_logprobs, read_alone<&P::logprobs>(value, c));
  return {};
}

ApiResult<void> read_prompt_logprobs(Json& value, const Context& c) {
  c.draft.return_prompt_logprobs = true;
  return sampling<&P::prompt_logprobs>(value, c);
}

ApiResult<void> read_allowed_token_ids(Json& value, const Context& c) {
  if (value.is_array() && value.empty())
    return refuse_field(c.field.name, "allowed_token_ids is empty, which allows nothing");
  return sampling<&P::allowed_token_ids>(value, c);
}

ApiResult<void> read_truncate(Json& value, const Context& c) {
  int count = 0;
  OCTAVO_CHECK_OK(read_as(value, c, count));
  if (count != -1 && (count < 1 || count > c.limits.max_model_len))
    return refuse_field(c.field.name,
                        fmt::format("truncate_prompt_tokens is {}; allowed: 1 to {}, or -1", count,
                                    c.limits.max_model_len));
  c.draft.truncate_prompt_tokens = count;
  return {};
}

ApiResult<void> read_priority(Json& value, const Context& c) {
  OCTAVO_CHECK_OK(read_as(value, c, c.draft.priority));
  if (c.draft.priority == 0 || c.limits.has_priorities) return {};
  return refuse_field(c.field.name,
                      fmt::format("priority is {}, but this server serves requests in another "
                                  "order (--scheduling-policy priority); leave it out",
                                  c.draft.priority));
}

ApiResult<void> read_num_speculative_tokens(Json& value, const Context& c) {
  int count = 0;
  OCTAVO_CHECK_OK(read_as(value, c, count));
  if (count < 0 || count > kMaxDraftTokens)
    return refuse_field(c.field.name, fmt::format("{} is {}; allowed: 0 to {}", c.field.name, count,
                                                  kMaxDraftTokens));
  c.draft.num_speculative_tokens = count;
  return {};
}

ApiResult<void> read_predicted(Json& value, const Context& c) {
  OCTAVO_TRY(c.draft.prediction, read_prediction(value));
  return {};
}

ApiResult<void> check_size(const std::string& text, const Context& c) {
  if (!text.empty() && text.size() <= kMaxNameBytes) return {};
  return refuse_field(c.field.name, fmt::format("{} has {} bytes; allowed: 1 to {}", c.field.name,
                                                text.size(), kMaxNameBytes));
}

ApiResult<void> read_cache_salt(Json& value, const Context& c) {
  OCTAVO_CHECK_OK(read_as(value, c, c.draft.cache_salt));
  return check_size(c.draft.cache_salt, c);
}

ApiResult<void> read_request_id(Json& value, const Context& c) {
  std::string& id = c.draft.request_id;
  OCTAVO_CHECK_OK(read_as(value, c, id));
  OCTAVO_CHECK_OK(check_size(id, c));
  if (std::all_of(id.begin(), id.end(), [](char b) { return b > ' ' && b < '\x7f'; })) return {};
  return refuse_field(c.field.name, "request_id must be of printable ASCII without spaces");
}

ApiResult<void> read_chat_template(Json& value, const Context& c) {
  OCTAVO_CHECK_OK(read_as(value, c, c.draft.chat_template.emplace()));
  if (c.limits.trust_request_chat_template) return {};
  return refuse_unsupported(c.field.name,
                            "chat_template of a request is used only if the server was started "
                            "with --trust-request-chat-template; leave it out");
}

ApiResult<void> read_word(const Json& value, const Context& c,
                          std::span<const std::string_view> known, std::string& out) {
  OCTAVO_CHECK_OK(read_as(value, c, out));
  if (std::find(known.begin(), known.end(), out) != known.end()) return {};
  return refuse_field(c.field.name, fmt::format("{} is {}; known are {}", c.field.name, quote(out),
                                                fmt::join(known, ", ")));
}

ApiResult<void> read_reasoning_effort(Json& value, const Context& c) {
  return read_word(value, c, reasoning_efforts(), c.draft.chat.reasoning_effort);
}

ApiResult<void> read_verbosity(Json& value, const Context& c) {
  return read_word(value, c, verbosities(), c.draft.chat.verbosity);
}

ApiResult<void> read_chat_template_kwargs(Json& value, const Context& c) {
  if (!value.is_object())
    return refuse_field(c.field.name, "chat_template_kwargs must be an object");
  if (value.contains("chat_template"))
    return refuse_field("chat_template_kwargs.chat_template",
                        "chat_template_kwargs.chat_template would replace nothing: a template is "
                        "no variable of itself; leave it out");
  if (value.size() > kMaxTemplateVariables)
    return refuse_field(c.field.name,
                        fmt::format("chat_template_kwargs has {} entries; allowed: 0 to {}",
                                    value.size(), kMaxTemplateVariables));
  c.draft.chat_template_kwargs = std::move(value);
  return {};
}

ApiResult<void> read_tools(Json& value, const Context& c) {
  OCTAVO_CHECK_OK(check_tools_field(value));
  if (!value.empty()) c.draft.tools = std::move(value);
  return {};
}

ApiResult<void> read_tool_choice(Json& value, const Context& c) {
  OCTAVO_TRY(const bool may_call, read_choice_of_tools(value, c.draft.tools));
  c.draft.hides_tools = !may_call;
  return {};
}

ApiResult<void> read_tokens(Json& value, const Context& c) {
  OCTAVO_TRY(c.draft.tokens, read_token_ids(value, c.field.name, c.limits));
  return {};
}

bool asks_for_nothing(const Json& value, const Context& c) {
  const Json neutral = Json::parse(c.field.schema)["enum"];
  return std::find(neutral.begin(), neutral.end(), value) != neutral.end();
}

ApiResult<void> refuse_unless_neutral(Json& value, const Context& c) {
  if (asks_for_nothing(value, c)) return {};
  return refuse_unsupported(c.field.name,
                            fmt::format("{} is not served; leave it out", c.field.name));
}

ApiResult<void> warn_unless_neutral(Json& value, const Context& c) {
  if (!asks_for_nothing(value, c))
    c.draft.warnings.push_back(fmt::format("{} is not served and has no effect", c.field.name));
  return {};
}

ApiResult<void> ignore(Json&, const Context&) { return {}; }

constexpr ApiField refused(std::string_view name, uint8_t endpoints, std::string_view neutral) {
  return {name,
          endpoints,
          FieldUse::refused,
          neutral,
          refuse_unless_neutral,
          "Not served: only values that ask for nothing"};
}

// Of how tokens are drawn, so that no answer has another form than was asked for.
constexpr ApiField inert(std::string_view name, std::string_view neutral) {
  return {
      name,    kGenerate,           FieldUse::inert,
      neutral, warn_unless_neutral, "llama.cpp's; not served, and no more than a warning says so"};
}

constexpr ApiField ignored(std::string_view name, uint8_t endpoints) {
  return {name, endpoints, FieldUse::ignored, "{}", ignore, "Ignored"};
}

constexpr std::string_view kBool = R"({"type":"boolean"})";
constexpr std::string_view kText = R"({"type":"string"})";
constexpr std::string_view kIds =
    R"({"type":"array","items":{"type":"integer","minimum":0,"maximum":@last_token}})";
constexpr std::string_view kCount = R"({"type":"integer","minimum":0,"maximum":2147483647})";
constexpr std::string_view kLogprobs =
    R"({"type":"integer","minimum":@min_logprobs,"maximum":@max_logprobs})";
constexpr std::string_view kPenalty = R"({"type":"number","minimum":-2,"maximum":2})";

constexpr std::string_view kNothing = R"({"enum":[]})";
constexpr std::string_view kEmptyText = R"({"enum":[""]})";
constexpr std::string_view kFalse = R"({"enum":[false]})";
constexpr std::string_view kTrue = R"({"enum":[true]})";
constexpr std::string_view kZero = R"({"enum":[0]})";
constexpr std::string_view kOne = R"({"enum":[1]})";
constexpr std::string_view kEmptyList = R"({"enum":[[]]})";
constexpr std::string_view kEmptyObject = R"({"enum":[{}]})";

constexpr FieldUse kServed = FieldUse::served;

// max_tokens is before min_tokens, and so on only for readers: the fields do not look at each
// other.
constexpr std::array kFields = {
    ApiField{"model", kAll, kServed, kText, read_model,
             "One of /v1/models; without it the server's first"},
    ApiField{"messages", kMessages, kServed,
             R"({"type":"array","minItems":1,"items":{"$ref":"#/components/schemas/Message"}})",
             read_messages, "The conversation"},
    ApiField{"prompt", kCompletions, kServed,
             R"({"anyOf":[{"type":"string","minLength":1},
                 {"type":"array","minItems":1,"maxItems":@max_choices,
                  "items":{"type":"string","minLength":1}},
                 {"type":"array","minItems":1,
                  "items":{"type":"integer","minimum":0,"maximum":@last_token}},
                 {"type":"array","minItems":1,"maxItems":@max_choices,
                  "items":{"type":"array","minItems":1,
                           "items":{"type":"integer","minimum":0,"maximum":@last_token}}}]})",
             read_prompt, "Text, token ids, or a list of either"},
    ApiField{"input", kEmbeddings, kServed,
             R"({"anyOf":[{"type":"string","minLength":1},
                 {"type":"array","minItems":1,"maxItems":2048,
                  "items":{"type":"string","minLength":1}},
                 {"type":"array","minItems":1,
                  "items":{"type":"integer","minimum":0,"maximum":@last_token}},
                 {"type":"array","minItems":1,"maxItems":2048,
                  "items":{"type":"array","minItems":1,
                           "items":{"type":"integer","minimum":0,"maximum":@last_token}}}]})",
             read_input, "Text, token ids, or a list of either"},
    ApiField{"encoding_format", kEmbeddings, kServed,
             R"({"type":"string","enum":["float","base64"]})", read_encoding_format,
             "base64: little-endian 32-bit floats"},
    ApiField{"dimensions", kEmbeddings, kServed,
             R"({"type":"integer","minimum":@least_dimensions,"maximum":@embedding_size})",
             read_dimensions,
             "Only the first so many, normalised again; for models that are made for it"},
    ApiField{"normalize", kEmbeddings, kServed, kBool, plain<&D::normalize>,
             "To length 1. Unset: as the model is made for"},
    ApiField{"prompt", kTokenize, kServed, kText, plain<&D::prompt_text>, "vLLM's shape"},
    ApiField{"content", kTokenize, kServed, kText, plain<&D::content>, "llama.cpp's shape"},
    ApiField{"tokens", kDetokenize, kServed, kIds, read_tokens, "Token ids"},

    ApiField{"stream", kGenerate, kServed, kBool, plain<&D::stream>,
             "Answer with server-sent events"},
    ApiField{"stream_options", kGenerate, kServed,
             R"({"type":"object","properties":{
                 "include_usage":{"type":["boolean","null"]},
                 "continuous_usage_stats":{"type":["boolean","null"]}}})",
             read_stream_options,
             "Only with stream. include_usage: a last event with usage and timings; "
             "continuous_usage_stats: usage in every event, with include_usage"},

    ApiField{"max_tokens", kGenerate, kServed, kCount, sampling<&P::max_tokens>,
             "Tokens of the answer, at most. Unset: 16 for completions, for chat the rest of the "
             "context"},
    ApiField{"max_completion_tokens", kChat, kServed, kCount, read_max_completion_tokens,
             "The newer name of max_tokens, and the one that counts where there are both"},
    ApiField{"min_tokens", kGenerate, kServed, kCount, sampling<&P::min_tokens>,
             "No end of the answer before so many tokens; at most max_tokens"},
    ApiField{"n", kGenerate, kServed, R"({"type":"integer","minimum":1,"maximum":@max_choices})",
             sampling<&P::n>, "Choices per prompt; prompts times n are at most @max_choices"},
    ApiField{"best_of", kGenerate, kServed,
             R"({"type":"integer","minimum":1,"maximum":@max_choices})", read_best_of,
             "As many as n: all that are generated are given out"},
    ApiField{"temperature", kGenerate, kServed, R"({"type":"number","minimum":0})",
             sampling<&P::temperature>, "0 takes the most probable token"},
    ApiField{"top_p", kGenerate, kServed, R"({"type":"number","exclusiveMinimum":0,"maximum":1})",
             sampling<&P::top_p>,
             "Only the most probable tokens that together have this probability"},
    ApiField{"top_k", kGenerate, kServed, R"({"type":"integer","minimum":-1,"maximum":2147483647})",
             sampling<&P::top_k>, "Only so many most probable tokens; 0 or -1: no limit"},
    ApiField{"min_p", kGenerate, kServed, R"({"type":"number","minimum":0,"maximum":1})",
             sampling<&P::min_p>, "Only tokens with this share of the highest probability"},
    ApiField{
        "seed", kGenerate, kServed,
        R"({"type":"integer","minimum":-9223372036854775808,"maximum":18446744073709551615})",
        sampling<&P::seed>,
        "Of 64 bits; a negative one stands for its two's complement. Unset: a fresh one, which "
        "the answer reports"},
    ApiField{"presence_penalty", kGenerate, kServed, kPenalty, sampling<&P::presence_penalty>,
             "Once for each token that was generated"},
    ApiField{"frequency_penalty", kGenerate, kServed, kPenalty, sampling<&P::frequency_penalty>,
             "For each time a token was generated"},
    ApiField{"repetition_penalty", kGenerate, kServed, R"({"type":"number","exclusiveMinimum":0})",
             sampling<&P::repetition_penalty>,
             "Above 1 makes tokens of prompt and answer less probable"},
    ApiField{"logit_bias", kGenerate, kServed,
             R"({"type":"object","propertyNames":{"pattern":"^(@token_pattern)$"},
                 "additionalProperties":{"type":"number","minimum":-100,"maximum":100}})",
             sampling<&P::logit_bias>, "From token ids to what is added to their logits"},
    ApiField{"stop", kGenerate, kServed,
             R"({"anyOf":[{"type":"string","minLength":1},
                 {"type":"array","maxItems":64,"items":{"type":"string","minLength":1}}]})",
             sampling<&P::stop>, "Texts that end the answer, of at most 4096 bytes"},
    ApiField{"stop_token_ids", kGenerate, kServed, kIds, sampling<&P::stop_token_ids>,
             "Tokens that end the answer"},
    ApiField{"ignore_eos", kGenerate, kServed, kBool, sampling<&P::ignore_eos>,
             "Go on after the model's end of the answer"},
    ApiField{"include_stop_str_in_output", kGenerate, kServed, kBool,
             sampling<&P::include_stop_str_in_output>, "The answer ends with the stop text"},
    ApiField{"skip_special_tokens", kGenerate, kServed, kBool, sampling<&P::skip_special_tokens>,
             "Leave control tokens out of the text"},
    ApiField{"bad_words", kGenerate, kServed,
             R"({"anyOf":[{"type":"string","pattern":"[^ ]"},
                 {"type":"array","maxItems":1024,"items":{"type":"string","pattern":"[^ ]"}}]})",
             sampling<&P::bad_words>,
             "Texts that are never written: of at most 4096 bytes each and 65536 in all"},
    ApiField{"allowed_token_ids", kGenerate, kServed,
             R"({"type":"array","minItems":1,
                 "items":{"type":"integer","minimum":0,"maximum":@last_token}})",
             read_allowed_token_ids, "No other token is drawn"},

    ApiField{"logprobs", kChat, kServed, kBool, plain<&D::chat_logprobs>,
             "Report the log-probability of each token"},
    ApiField{"top_logprobs", kChat, kServed, kLogprobs, read_top_logprobs,
             "So many most probable tokens at each place, with logprobs"},
    ApiField{"logprobs", kCompletions, kServed, kLogprobs, sampling<&P::logprobs>,
             "Report each token, and so many most probable ones at its place. Values below -9999 "
             "are reported as -9999"},
    ApiField{"prompt_logprobs", kGenerate, kServed, kLogprobs, read_prompt_logprobs,
             "The same for the prompt's tokens"},
    ApiField{"echo", kCompletions, kServed, kBool, plain<&D::echo>,
             "The answer begins with the prompt"},
    ApiField{"return_token_ids", kGenerate, kServed, kBool, plain<&D::return_token_ids>,
             "Report the ids of prompt and answer"},
    ApiField{"return_tokens_as_token_ids", kGenerate, kServed, kBool,
             plain<&D::return_tokens_as_token_ids>,
             "In logprobs, name tokens token_id:N in place of their text"},
    ApiField{"suffix", kCompletions, kServed, "@suffix", plain<&D::suffix>,
             "The text that comes behind the answer; for models with tokens for filling in"},

    ApiField{"truncate_prompt_tokens", kEmbeddings, kServed,
             R"({"anyOf":[{"const":-1},{"type":"integer","minimum":1,"maximum":@max_model_len}]})",
             read_truncate,
             "Keep only so many tokens, the first and those that stand around every text; -1: as "
             "many as the model takes. Unset: a longer input is refused"},
    ApiField{"truncate_prompt_tokens", kGenerate, kServed,
             R"({"anyOf":[{"const":-1},{"type":"integer","minimum":1,"maximum":@max_model_len}]})",
             read_truncate,
             "Keep only so many of the prompt's last tokens; -1: as many as leave room for "
             "max_tokens"},
    ApiField{"priority", kQueued, kServed,
             R"({"type":"integer","minimum":@min_priority,"maximum":@max_priority})", read_priority,
             "Lower goes first; only with --scheduling-policy priority"},
    ApiField{"num_speculative_tokens", kGenerate, kServed,
             R"({"type":"integer","minimum":0,"maximum":@max_draft_tokens})",
             read_num_speculative_tokens,
             "Tokens that are guessed at a time, at most; 0: none. Unset: as many as "
             "--speculative-config of the server says. No answer depends on it"},
    ApiField{"prediction", kGenerate, kServed,
             R"({"type":"object","required":["type","content"],"properties":{
                 "type":{"const":"content"},"content":{"anyOf":[{"type":"string"},{"type":"array",
                 "items":{"$ref":"#/components/schemas/TextPart"}}]}}})",
             read_predicted,
             "Text that much of the answer repeats: guesses are made of it, and right ones save "
             "time. Of no use where the server guesses nothing. No answer depends on it"},
    ApiField{"cache_salt", kQueued, kServed, R"({"type":"string","minLength":1,"maxLength":256})",
             read_cache_salt, "Requests share cached prefixes only with those of the same salt"},
    ApiField{"request_id", kQueued, kServed, R"({"type":"string","pattern":"^[!-~]{1,256}$"})",
             read_request_id, "Becomes part of the answer's id"},

    ApiField{
        "add_special_tokens", kAllButDetokenize, kServed, kBool, plain<&D::add_special_tokens>,
        "Put the model's begin of text before a prompt that is text, by default true, or before "
        "a conversation, by default false: chat templates write it"},
    ApiField{"add_special", kTokenize, kServed, kBool, plain<&D::add_special_tokens>,
             "add_special_tokens of llama.cpp's shape, by default false"},
    ApiField{"parse_special", kCompletions | kTokenize | kEmbeddings, kServed, kBool,
             plain<&D::parse_special>,
             "Take control tokens that are spelled out in a text for what they spell, by default "
             "true. In messages they are ordinary text always"},
    ApiField{"return_token_strs", kTokenize, kServed, kBool, plain<&D::return_token_strs>,
             "Report each token's text"},
    ApiField{"with_pieces", kTokenize, kServed, kBool, plain<&D::return_token_strs>,
             "The same in llama.cpp's shape"},

    ApiField{
        "add_generation_prompt", kMessages, kServed, kBool,
        [](Json& v, const Context& c) { return read_as(v, c, c.draft.chat.add_generation_prompt); },
        "The prompt ends where the answer begins, by default true, but not with "
        "continue_final_message"},
    ApiField{"continue_final_message", kMessages, kServed, kBool,
             [](Json& v, const Context& c) {
               return read_as(v, c, c.draft.chat.continue_final_message);
             },
             "The answer goes on from the last message, which is the assistant's"},
    ApiField{"chat_template", kMessages, kServed, "@chat_template", read_chat_template,
             "In place of the model's; needs --trust-request-chat-template"},
    ApiField{"chat_template_kwargs", kMessages, kServed,
             R"({"type":"object","maxProperties":1024,"not":{"required":["chat_template"]}})",
             read_chat_template_kwargs, "Further variables of the template"},

    ApiField{"reasoning_effort", kMessages, kServed,
             R"({"enum":["none","minimal","low","medium","high","xhigh"]})", read_reasoning_effort,
             "How much the model thinks, as far as its chat template can tell it: by its variables "
             "reasoning_effort, thinking_budget, enable_thinking or thinking"},
    ApiField{"verbosity", kMessages, kServed, R"({"enum":["low","medium","high"]})", read_verbosity,
             "How much the model says, where its chat template has a variable of that name"},

    refused("messages", kEmbeddings, kNothing),
    refused("embed_dtype", kEmbeddings, R"({"enum":["float32"]})"),
    refused("endianness", kEmbeddings, R"({"enum":["native","little"]})"),
    refused("truncation_side", kEmbeddings, R"({"enum":["right"]})"),
    ApiField{"tools", kMessages, kServed,
             R"({"type":"array","items":{"$ref":"#/components/schemas/Tool"}})", read_tools,
             "What the model may call, told by its chat template or, where that has no place for "
             "it, by the server. strict is taken and not enforced"},
    // After tools, whose names it may have.
    ApiField{"tool_choice", kChat, kServed, R"({"enum":["none","auto"]})", read_tool_choice,
             "auto: the model decides; none: it does not learn of the tools. \"required\" and a "
             "named function are refused: nothing enforces them yet"},
    ApiField{"parallel_tool_calls", kChat, kServed, kBool, plain<&D::parallel_tool_calls>,
             "false: of several calls in an answer the first is kept"},
    ApiField{"include_reasoning", kChat, kServed, kBool, plain<&D::include_reasoning>,
             "false: the reasoning is left out of the answer"},

    refused("functions", kChat, kEmptyList),
    refused("function_call", kChat, R"({"enum":["none"]})"),
    refused("response_format", kGenerate, R"({"enum":[{"type":"text"}]})"),
    refused("modalities", kChat, R"({"enum":[["text"]]})"),
    refused("audio", kChat, kNothing),
    refused("web_search_options", kChat, kNothing),
    refused("echo", kChat, kFalse),
    refused("prompt_embeds", kCompletions, kNothing),
    refused("use_beam_search", kGenerate, kFalse),
    refused("length_penalty", kGenerate, kOne),
    refused("structured_outputs", kGenerate, kEmptyObject),
    refused("guided_json", kGenerate, kNothing),
    refused("guided_regex", kGenerate, kNothing),
    refused("guided_choice", kGenerate, kNothing),
    refused("guided_grammar", kGenerate, kNothing),
    refused("guided_decoding_backend", kGenerate, kNothing),
    refused("guided_whitespace_pattern", kGenerate, kNothing),
    refused("structural_tag", kGenerate, kNothing),
    refused("grammar", kGenerate, kEmptyText),
    refused("json_schema", kGenerate, kNothing),
    refused("spaces_between_special_tokens", kGenerate, kTrue),
    refused("truncation_side", kGenerate, R"({"enum":["left"]})"),
    refused("logprob_token_ids", kGenerate, kEmptyList),
    refused("return_token_offsets", kGenerate, kFalse),
    refused("return_prompt_text", kChat, kFalse),
    refused("kv_transfer_params", kGenerate, kEmptyObject),
    refused("vllm_xargs", kGenerate, kEmptyObject),
    refused("repetition_detection", kGenerate, kNothing),
    refused("thinking_token_budget", kGenerate, kNothing),
    refused("stream_interval", kGenerate, kOne),
    refused("documents", kChat, kEmptyList),
    refused("mm_processor_kwargs", kMessages, kEmptyObject),
    refused("media_io_kwargs", kMessages, kEmptyObject),

    inert("n_predict", R"({"enum":[-1]})"),
    inert("n_probs", kZero),
    inert("typical_p", kOne),
    inert("top_n_sigma", R"({"enum":[-1]})"),
    inert("repeat_penalty", kOne),
    inert("dynatemp_range", kZero),
    inert("xtc_probability", kZero),
    inert("dry_multiplier", kZero),
    inert("mirostat", kZero),

    ignored("user", kQueued),
    ignored("metadata", kChat),
    ignored("store", kChat),
    ignored("service_tier", kChat),
    ignored("safety_identifier", kChat),
    ignored("prompt_cache_key", kChat),
    ignored("prompt_cache_retention", kChat),
    ignored("session_id", kGenerate),
};

}  // namespace

std::span<const ApiField> api_fields() { return kFields; }

ApiResult<void> read_fields(BodyFields& body, Endpoint endpoint, const ApiLimits& limits,
                            RequestDraft& draft) {
  OCTAVO_CHECK_OK(check_unknown_fields(body, endpoint, limits, draft.warnings));
  for (const ApiField& field : kFields) {
    if (!(field.endpoints & endpoint)) continue;
    const auto found = body.find(field.name);
    if (found == body.end() || found->second.is_null()) continue;
    OCTAVO_CHECK_OK(field.read(found->second, {field, limits, draft}));
  }
  return {};
}

tl::unexpected<ApiError> refuse_field(std::string_view param, std::string message) {
  return tl::unexpected<ApiError>({.message = std::move(message), .param = std::string(param)});
}

tl::unexpected<ApiError> refuse_unsupported(std::string_view param, std::string message) {
  return tl::unexpected<ApiError>({.message = std::move(message),
                                   .param = std::string(param),
                                   .code = "unsupported_parameter"});
}

}  // namespace octavo
