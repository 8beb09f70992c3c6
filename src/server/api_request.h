// Bodies of requests as checked types. Every field is read by one table (api_fields.cc), which also
// writes the schema of /openapi.json. Errors have status 400.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/ids.h"
#include "core/sampling_params.h"
#include "llm/prompt.h"
#include "server/api_error.h"
#include "server/api_warnings.h"
#include "text/answer_parser.h"

namespace octavo {

// What requests are checked against.
struct ApiLimits {
  int vocab_size = 0;
  int max_model_len = 0;
  int max_logprobs = kMaxLogprobs;
  SamplingParams defaults = {};  // of fields that a request does not name
  bool has_priorities = false;
  bool trust_request_chat_template = false;
  bool strict_fields = false;  // fields that are not known are refused
  bool fills_in = false;       // the model has tokens for a suffix
  int max_choices = 1024;      // prompts x n of one request
  int embedding_size = 0;
  bool matryoshka = false;  // embeddings may be cut
};

// Both endpoints.
struct GenerationRequest {
  std::optional<std::string> model = {};  // unset: the request leaves the choice to the server
  SamplingParams params;
  bool max_tokens_is_default = false;  // then less is generated where the context has less room
  bool stream = false;
  bool include_usage = false;
  bool continuous_usage_stats = false;
  int priority = 0;
  std::string cache_salt = {};
  std::string request_id = {};  // for the answer's id; empty: the server makes one
  std::optional<int> truncate_prompt_tokens = {};  // keeps the last so many
  bool return_token_ids = false;
  bool return_tokens_as_token_ids = false;  // in logprobs
  // The answer has them; params may ask for them only so that an echo has its logprobs.
  bool return_prompt_logprobs = false;
  bool echo = false;                               // the answer begins with the prompt
  std::optional<int> num_speculative_tokens = {};  // as in Request
  std::string prediction = {};                     // what much of the answer may repeat
  ApiWarnings warnings = {};
};

struct ChatRequest : GenerationRequest {
  nlohmann::ordered_json messages;
  ChatOptions chat = {};
  std::optional<std::string> chat_template = {};
  nlohmann::ordered_json chat_template_kwargs = nlohmann::ordered_json::object();
  nlohmann::ordered_json tools = nullptr;  // what the model may call; null: nothing
  bool parallel_tool_calls = true;
  bool include_reasoning = true;
  bool add_special_tokens = false;

  // What the answer is taken apart by, and the control tokens that it needs; of the service.
  AnswerFormat format = {};
  std::vector<TokenId> shown_control_tokens = {};
};

using PromptInput = std::variant<std::string, std::vector<TokenId>>;

struct CompletionRequest : GenerationRequest {
  std::vector<PromptInput> prompts;
  std::string suffix = {};  // what comes behind the answer; empty: nothing is known of it
  bool add_special_tokens = true;
  bool parse_special = true;
};

// Of /v1/embeddings. Of params nothing is used.
inline constexpr int kMaxEmbeddingInputs = 2048;
struct EmbeddingRequest : GenerationRequest {
  std::vector<PromptInput> inputs;
  bool in_base64 = false;
  std::optional<int> dimensions = {};
  std::optional<bool> normalize = {};  // unset: as the model says
  bool add_special_tokens = true;
  bool parse_special = true;
};

// Of /tokenize, in vLLM's shape (prompt, or messages) and llama.cpp's (content).
struct TokenizeRequest {
  std::optional<std::string> model = {};
  std::optional<std::string> text = {};
  std::optional<nlohmann::ordered_json> messages = {};  // instead of text
  ChatOptions chat = {};
  std::optional<std::string> chat_template = {};
  nlohmann::ordered_json chat_template_kwargs = nlohmann::ordered_json::object();
  nlohmann::ordered_json tools = nullptr;
  bool add_special_tokens = true;
  bool parse_special = true;
  bool return_token_strs = false;
  bool is_llama_shape = false;
  ApiWarnings warnings = {};
};
struct DetokenizeRequest {
  std::optional<std::string> model = {};
  std::vector<TokenId> tokens = {};
  ApiWarnings warnings = {};
};

ApiResult<ChatRequest> parse_chat_request(std::string_view body, const ApiLimits& limits);
ApiResult<CompletionRequest> parse_completion_request(std::string_view body,
                                                      const ApiLimits& limits);
ApiResult<EmbeddingRequest> parse_embedding_request(std::string_view body, const ApiLimits& limits);
ApiResult<TokenizeRequest> parse_tokenize_request(std::string_view body, const ApiLimits& limits);
ApiResult<DetokenizeRequest> parse_detokenize_request(std::string_view body,
                                                      const ApiLimits& limits);

}  // namespace octavo
